"""`pot mock-endpoint`: serves reference programs, golds or a scenario over HTTP."""

from __future__ import annotations

import asyncio
import errno
import math
import signal
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.problem import Problem
from agent.cli.settings import problems
from agent.endpoint.answerers import Answerer, ScriptedAnswers
from agent.endpoint.app import Log, Settings, make_app
from agent.endpoint.gold import GoldAnswers
from agent.endpoint.scenario import ScenarioAnswers, ScenarioError, read_scenario
from agent.endpoint.server import serve
from agent.signals import run_async
from benchmarks import registry


class Served(StrEnum):
    scripted = "scripted"
    gold = "gold"


class DialectName(StrEnum):
    auto = "auto"
    tools = "tools"
    fenced = "fenced"
    tags = "tags"


def command(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the items; --model gold needs it.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split of --data.")] = "test",
    model: Annotated[
        Served, typer.Option(help="scripted: reference programs; gold: the gold answers.")
    ] = Served.scripted,
    scenario: Annotated[
        Path | None, typer.Option(help="JSON list or lines of replies and faults, in order.")
    ] = None,
    dialect: Annotated[
        DialectName, typer.Option(help="How code is written; auto goes by the request.")
    ] = DialectName.auto,
    log: Annotated[Path | None, typer.Option(help="One JSON line a request is added here.")] = None,
    log_bodies: Annotated[
        bool, typer.Option("--log-bodies", help="The log holds whole bodies, pictures too.")
    ] = False,
    api_key: Annotated[str | None, typer.Option(help="Asked for; any other is refused.")] = None,
    delay: Annotated[float, typer.Option(min=0, help="Seconds before each answer.")] = 0.0,
    fail_rate: Annotated[float, typer.Option(min=0, max=1, help="Share that fails.")] = 0.0,
    fail_status: Annotated[str, typer.Option(help="What failures are, of these.")] = "429,500",
    retry_after: Annotated[
        float | None, typer.Option(min=0, help="Seconds, in the Retry-After of failures.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of failures.")] = 0,
) -> None:
    """Serve an OpenAI-compatible endpoint; the first line on stdout is its base URL."""
    numbers = {"--delay": delay, "--fail-rate": fail_rate, "--retry-after": retry_after or 0.0}
    for flag, number in numbers.items():
        if not math.isfinite(number):
            raise Problem(f"{flag}: expected a finite number, found {number}")
    settings = Settings(api_key, delay, fail_rate, _statuses(fail_status), retry_after, seed)
    answerer = _answerer(model, data, split, scenario, dialect)
    try:
        run_async(_serve(answerer, settings, Log(log, bodies=log_bodies), port))
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EPIPE):
            raise  # of standard output, which is said where all commands say it
        raise Problem(f"expected a free port and a log to write to, found: {problem}") from None


def _answerer(
    model: Served, data: Path | None, split: str, scenario: Path | None, dialect: DialectName
) -> Answerer:
    if scenario is not None and data is not None:
        raise Problem("expected --data or --scenario, found both; leave one out")
    if scenario is not None:
        try:
            return ScenarioAnswers(read_scenario(scenario), dialect.value)
        except ScenarioError as problem:
            raise Problem(str(problem)) from None
    if model is Served.gold and data is None:
        raise Problem("expected --data with the folder of the items, found none")
    with problems():
        samples = registry.load("cwi", data=data, split=split) if data is not None else []
    return GoldAnswers(samples) if model is Served.gold else ScriptedAnswers(dialect.value)


def _statuses(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 400 <= int(word) <= 599 for word in words):
        raise Problem(f"--fail-status: expected statuses such as 429,500, found {text!r}")
    return tuple(int(word) for word in words)


async def _serve(answerer: Answerer, settings: Settings, log: Log, port: int) -> None:
    """Until SIGTERM, its orderly end, or Ctrl-C."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with log:
        async with serve(make_app(answerer, settings, log), port) as base_url:
            typer.echo(base_url)
            await stop.wait()
