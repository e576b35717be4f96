"""`pot run`: evaluates a model on a benchmark, or goes on with a run.

The module is not called `run`: as an attribute of its package it would hide the function there.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from agent.cli.console import Console
from agent.cli.settings import given, problems
from agent.cli.shared import shared
from agent.config import RunConfig, read_file, resolve
from agent.errors import ConfigError
from agent.evaluate import Ready, evaluate, ready, what_is_left
from agent.evaluate import resume as resume_run
from agent.models.local import HUMAN, SCRIPTED
from agent.progress import Watcher, watching
from agent.run import Finished, is_owed
from agent.rundir import Key
from agent.signals import run_async
from agent.stats import Item, Row, count
from agent.table import losses, table, why_lost

ENDPOINT_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")


@shared
def command(
    benchmark: Annotated[str | None, typer.Argument(metavar="[BENCH]", help="e.g. cwi")] = None,
    tasks: Annotated[str | None, typer.Option(help="Separated by commas; all by default.")] = None,
    split: Annotated[str | None, typer.Option(help="[default: test]")] = None,
    data: Annotated[
        str | None, typer.Option(help="Folder of the data, or hub:ORG/NAME[@REVISION].")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="So many samples, evenly over tasks.")] = None,
    ids: Annotated[str | None, typer.Option(help="These samples, separated by commas.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Times each sample. [default: 1]")] = None,
    workers: Annotated[int | None, typer.Option(help="Samples in flight. [default: 4]")] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; else a new one.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Do what is missing in this run.")] = None,
    retry: Annotated[
        str | None, typer.Option(help="With --resume: also what ended as no_span, max_turns, …")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the run in --out; mix settings in --resume.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would run, as JSON.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON object.")
    ] = False,
    **settings: Any,
) -> None:
    """Evaluate a model on a benchmark."""
    chosen = {"benchmark": benchmark, "tasks": tasks, "split": split, "data": data, "ids": ids}
    chosen |= {"limit": limit, "repeats": repeats, "workers": workers}
    config: Path | None = settings.pop("config")
    with problems():
        flags = given({**chosen, **settings})
        if resume is not None:
            again = [word.strip() for word in (retry or "").split(",") if word.strip()]
            finished = _continue(resume, out, flags, config, force, dry_run, again)
        elif retry is not None:
            raise ConfigError("--retry: expected with --resume RUN")
        else:
            finished = _begin(flags, config, out, force, dry_run)
    if finished is not None:
        _show(finished, as_json)
        raise typer.Exit(finished.exit_code)


def _begin(
    flags: Mapping[str, Any], file: Path | None, out: Path | None, force: bool, dry_run: bool
) -> Finished | None:
    config = resolve(flags, file)
    if config.model == SCRIPTED and "model" not in flags and file is None:
        _refuse_silence(config)
    if dry_run:
        _say_what_would_run(ready(config), {})
        return None
    return run_async(evaluate(config, out, force=force, watching=_watching))


def _refuse_silence(config: RunConfig) -> None:
    """With an endpoint at hand and no model named, the reference programs are not what is meant."""
    if config.base_url or any(os.environ.get(name) for name in ENDPOINT_VARIABLES):
        raise ConfigError("expected --model NAME at the endpoint, found none; or --model scripted")


def _continue(
    path: Path,
    out: Path | None,
    flags: Mapping[str, Any],
    file: Path | None,
    force: bool,
    dry_run: bool,
    retry: Sequence[str],
) -> Finished | None:
    if out is not None:
        raise ConfigError("--out: a resumed run stays where it is; leave it out")
    changes = {**(read_file(file) if file else {}), **flags}
    if dry_run:
        _say_what_would_run(*what_is_left(path, changes, force=force, retry=retry))
        return None
    going_on = resume_run(path, changes, force=force, retry=retry, watching=_watching)
    return run_async(going_on)


def _watching(
    owed: Sequence[Item], rows: Mapping[Key, Row], config: RunConfig
) -> AbstractContextManager[Watcher]:
    return watching(owed, rows, sys.stderr, bar=config.model != HUMAN)


def _say_what_would_run(made: Ready, rows: Mapping[Key, Row]) -> None:
    """The counts and the resolved settings; nothing is opened, asked or written."""
    todo = [item for item in made.owed if is_owed(item, rows)]
    told = {
        "owed": len(made.owed),
        "to_run": len(todo),
        "by_task": dict(Counter(item.task for item in todo)),
        "cost": None,
        "config": made.config.public().to_json(),
    }
    typer.echo(json.dumps(told, indent=1, ensure_ascii=False))


def _show(finished: Finished, as_json: bool) -> None:
    """The summary as JSON or the table on standard output; how it ended on standard error."""
    why = why_lost(finished.owed, finished.rows)
    if as_json:
        typer.echo(json.dumps(finished.summary, ensure_ascii=False))
        for line in why:
            typer.echo(line, err=True)
    else:
        console = Console(highlight=False)
        console.print(table(finished.owed, finished.rows))
        for line in why:
            console.print(Text(line), soft_wrap=True)
        report = finished.run.path / "report.html"
        console.print(Text(f"Run: {finished.run.path}"), soft_wrap=True)
        if report.exists() and not finished.interrupted:
            console.print(Text(f"Report: {report}"), soft_wrap=True)
    if finished.interrupted or finished.stopped:
        how = "interrupted" if finished.interrupted else f"stopped: {finished.stopped}"
        typer.echo(f"pot: {how}; go on with: pot run --resume {finished.run.path}", err=True)
    elif finished.exit_code:
        lost = losses(count(finished.owed, finished.rows))
        again = f"pot run --resume {finished.run.path} tries again"
        typer.echo(f"pot: {lost} {again}", err=True)
