"""`pot ask`: one question about pictures, shown as it happens."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from agent.cli.console import Console
from agent.cli.settings import given, problems
from agent.cli.shared import shared
from agent.cli.streams import MOST_PICTURE, read_bytes
from agent.config import RunConfig, resolve
from agent.errors import ConfigError, InputProblem
from agent.fitness import refuse_unfit
from agent.loop import run_sample
from agent.messages import Dialect, Reply, Run
from agent.models.local import SCRIPTED
from agent.models.replay import replayed
from agent.prepare import dialect_of, model_of, opener, resolved, wall_of
from agent.ranges import text_fault
from agent.showing import visible
from agent.signals import run_async
from agent.trajectory import Trajectory
from benchmarks.pictures import suffix
from benchmarks.sample import Picture, Sample
from sandbox.outputs import Display, Error, Execution
from sandbox.reaper import guard


@shared
def command(
    words: Annotated[list[str], typer.Argument(metavar="IMAGE… QUESTION", help="Question last.")],
    **settings: Any,
) -> None:
    """Ask one question about pictures and watch the model work."""
    file: Path | None = settings.pop("config")
    with problems():
        flags = given(settings)
        config = resolve({"benchmark": "ask", **flags}, file)
        if "model" not in flags and config.model == SCRIPTED:
            raise ConfigError("expected --model NAME (and OPENAI_BASE_URL or --base-url)")
        if replayed(config.model) is not None:
            raise ConfigError(f"--model {config.model}: it answers the samples of `pot run` only")
        *paths, question = words
        sample = _sample(paths, question)
        refuse_unfit(config, [sample])
        with _own_names(sample, paths):
            trajectory = run_async(_ask(sample, config, Console(highlight=False)))
    raise typer.Exit(0 if trajectory.answer is not None else 1)


def _sample(paths: Sequence[str], question: str) -> Sample:
    # os.path, not pathlib: a long question is no file name, which pathlib takes for an error.
    if os.path.isfile(question) or not question.strip():  # noqa: PTH113
        raise ConfigError(f"expected a question after the pictures, found {question[:60]!r}")
    if fault := text_fault({"question": question}):
        raise ConfigError(fault.removeprefix("--"))
    pictures = [_picture(number, path) for number, path in enumerate(paths, 1)]
    return Sample("ask", "ask", "ask", question + _names(paths), tuple(pictures), target="")


def _names(paths: Sequence[str]) -> str:
    """The files are image_1, image_2, … in the box, as in a run; a question may name them as the
    user does, so the model is told which is which."""
    called = [f"image_{n} is {visible(Path(path).name)}" for n, path in enumerate(paths, 1)]
    return f"\n\nThe user's names of the files: {', '.join(called)}." if called else ""


def _picture(number: int, path: str) -> Picture:
    data = read_bytes(path, "a picture", MOST_PICTURE)
    return Picture(f"image_{number}.{suffix(data)}", data)


@contextmanager
def _own_names(sample: Sample, paths: Sequence[str]) -> Generator[None]:
    """A picture that cannot be used is named as the user named it."""
    try:
        yield
    except InputProblem as problem:
        name, mark, rest = str(problem).partition(": ")
        own = {p.name: path for p, path in zip(sample.pictures, paths, strict=True)}
        raise InputProblem(f"{own.get(name, name)}{mark}{rest}") from None


async def _ask(sample: Sample, asked: RunConfig, console: Console) -> Trajectory:
    wall, dialect = await asyncio.to_thread(wall_of, asked), dialect_of(asked)
    config, run_id = resolved(asked, wall, dialect), secrets.token_hex(8)
    screen = Screen(console, dialect)
    opened = opener(config, wall, run_id)
    async with model_of(config, screen.note) as model:
        with guard(run_id):
            trajectory = await run_sample(
                sample,
                model,
                lambda files: opened(files, config.sample_seed("ask", 0)),
                dialect,
                config,
                watch=screen.show,
            )
    screen.end(trajectory)
    return trajectory


class Screen:
    """Prints replies and executions as they come; nothing in them reaches the terminal raw."""

    def __init__(self, console: Console, dialect: Dialect) -> None:
        self.console = console
        self.dialect = dialect
        self.turn = 0

    def note(self, line: str) -> None:
        self._print(line, "dim")

    def show(self, what: Reply | Execution) -> None:
        if isinstance(what, Execution):
            self._execution(what)
        else:
            self._reply(what)

    def end(self, trajectory: Trajectory) -> None:
        if trajectory.answer is None:
            self._print(f"No answer ({trajectory.stop}).", "bold red")
        else:
            self._print(f"Answer: {trajectory.answer}", "bold green")

    def _reply(self, reply: Reply) -> None:
        self.turn += 1
        self._print(f"── turn {self.turn} · {reply.usage.completion_tokens} tokens", "bold")
        if reply.reasoning:
            self._print(reply.reasoning.strip(), "dim italic")
        self._print((reply.refusal or reply.text).strip(), "")
        for action in self.dialect.read(reply):
            if isinstance(action, Run) and action.code.strip() not in reply.text:
                self._print(action.code.rstrip(), "cyan")

    def _execution(self, execution: Execution) -> None:
        for output in execution.outputs:
            if isinstance(output, Display) and output.is_picture:
                self._print(f"[picture {output.width}×{output.height} px]", "magenta")
            elif isinstance(output, Error):
                self._print(output.traceback or f"{output.name}: {output.message}", "red")
            else:
                self._print(output.text.rstrip("\n"), "yellow")
        cause = f" ({execution.cause})" if execution.cause else ""
        self._print(f"[{execution.status}{cause}, {execution.seconds:.2f} s]", "dim")

    def _print(self, text: str, style: str) -> None:
        if text:
            self.console.print(Text(visible(text), style=style), soft_wrap=True)
