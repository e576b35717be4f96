"""A box for tests that are not coroutines: one event loop, kept for a whole module."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from sandbox.outputs import Error, Execution, Stream
from sandbox.session import Box, open_box
from sandbox.spec import InputFile, Limits
from sandbox.wall import Wall

T = TypeVar("T")

SMALL = Limits(
    memory_mb=512,
    pids=64,
    work_mb=48,
    tmp_mb=48,
    shm_mb=16,
    cell_seconds=20,
    grace_seconds=1.0,
    output_chars=4000,
    pictures=4,
    picture_pixels=250_000,
)
"""Limits that are quickly reached and cannot hurt the machine."""


class Cells:
    """Runs cells one after the other in one box."""

    def __init__(self, runner: asyncio.Runner, box: Box, wall: Wall) -> None:
        self._runner = runner
        self.box = box
        self.wall = wall

    def run(self, code: str, seconds: float | None = None) -> Execution:
        return self._runner.run(self.box.run(textwrap.dedent(code).strip("\n"), seconds))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop of the box."""
        return self._runner.run(work)

    def text(self, code: str) -> str:
        """What a cell prints that must succeed."""
        execution = self.run(code)
        assert execution.status == "ok", execution
        return execution.text

    def preloaded(self) -> None:
        self._runner.run(self.box.preloaded())

    def enforces(self, what: str) -> str:
        """`yes` or the wall's own words why not."""
        return self.box.facts["enforced"][what]


@contextmanager
def opened(
    wall: Wall, limits: Limits = SMALL, inputs: tuple[InputFile, ...] = (), seed: int = 0
) -> Generator[Cells]:
    with asyncio.Runner() as runner:
        context = open_box(wall, limits=limits, inputs=inputs, seed=seed)
        box = runner.run(context.__aenter__())
        try:
            yield Cells(runner, box, wall)
        finally:
            runner.run(context.__aexit__(None, None, None))


def stdout(execution: Execution) -> str:
    return "".join(
        o.text for o in execution.outputs if isinstance(o, Stream) and o.name == "stdout"
    )


def error(execution: Execution) -> Error:
    """The one exception of a cell that failed."""
    found = [o for o in execution.outputs if isinstance(o, Error)]
    assert len(found) == 1, execution
    return found[0]
