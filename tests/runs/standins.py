"""The smallest real parts that a run can be made of: a box that echoes, models that behave."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from agent import dialects
from agent.config import RunConfig
from agent.messages import Reply, Request, Usage
from agent.plan import OpenSeeded, Plan
from agent.stats import Row
from benchmarks.sample import Picture, Sample
from sandbox.outputs import Execution, Stream
from sandbox.spec import InputFile
from tests.runs.results import png


class EchoBox:
    """Says which code it was given."""

    data_dir = "/mnt/data"

    async def run(self, code: str, seconds: float | None = None) -> Execution:
        del seconds
        return Execution((Stream("stdout", f"ran {code}"),), "ok", None, "kept", 0.25, 0.1, 9.0)


@asynccontextmanager
async def echo_box(files: Sequence[InputFile], seed: int) -> AsyncGenerator[EchoBox]:
    del files, seed
    yield EchoBox()


class Answering:
    """Runs one cell, then gives `answer(request)`; an exception in its place is raised."""

    name = "answering"

    def __init__(self, answer: Callable[[Request], str | Exception]) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        if request.turn == 1:
            text: str | Exception = "```python\nprint(1)\n```"
        else:
            text = self.answer(request)
        if isinstance(text, Exception):
            raise text
        return Reply(text, finish_reason="stop", usage=Usage(100, 7), seconds=0.5)


class Log:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.notes: list[str] = []

    def done(self, row: Row) -> None:
        self.rows.append(row)

    def note(self, line: str) -> None:
        self.notes.append(line)


def samples(count: int, task: str = "swatch_rgb") -> dict[str, Sample]:
    target = "10,20,30"
    made = [
        Sample(
            f"{task}/test/{n}",
            "cwi",
            task,
            "Which colour?",
            (Picture("image_1.png", png()),),
            target,
        )
        for n in range(count)
    ]
    return {sample.id: sample for sample in made}


def plan(model: Answering, count: int = 6, workers: int = 2, opened: OpenSeeded = echo_box) -> Plan:
    config = RunConfig("cwi", workers=workers, dialect="fenced")
    return Plan(config, samples(count), model, dialects.get("fenced"), opened, pause=0.0)
