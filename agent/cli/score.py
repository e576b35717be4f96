"""`pot score`: score a run again, or a file of saved responses; needs no model and no sandbox."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.cli.problem import Problem
from agent.cli.streams import MOST_RESPONSES, read_text
from agent.errors import RunDirError
from agent.files import write_whole
from benchmarks.errors import BenchmarkError
from benchmarks.registry import LOADERS
from benchmarks.responses import score_lines


def command(
    run: Annotated[
        Path | None, typer.Argument(help="A run directory, whose records are scored again.")
    ] = None,
    benchmark: Annotated[str, typer.Option(help="With --responses: whose rules.")] = "",
    responses: Annotated[
        str, typer.Option(help="A file of responses, one JSON object a line; - for stdin.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Write here instead of stdout.")] = None,
) -> None:
    """Score a run again, or a file of responses."""
    if (run is None) == (not responses):
        raise Problem("expected a run directory or --responses FILE, one of the two")
    if run is not None:
        _score_run(run)
        return
    if benchmark not in LOADERS:
        raise Problem(
            f"expected --benchmark, one of {', '.join(LOADERS)}, found {benchmark or 'none'}"
        )
    try:
        results = score_lines(benchmark, _lines(responses), responses)
    except BenchmarkError as problem:
        raise Problem(str(problem)) from None
    _write("".join(_json(result) for result in results), out)


def _score_run(run: Path) -> None:
    from agent.cli.rescored import show  # here: the other form needs nothing of a run

    show(run)


def _lines(responses: str) -> list[str]:
    # Only line feeds end a line: JSON texts may hold U+2028 and its like unescaped.
    return read_text(responses, "a file of responses", MOST_RESPONSES).split("\n")


def _json(result: dict[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n"


def _write(text: str, out: Path | None) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        write_whole(out, data)
    except RunDirError as problem:
        raise Problem(str(problem)) from None
