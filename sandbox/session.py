"""The host end of a box: run cells under a deadline, whatever they do.

`Box.run` never raises for what a cell does. The deadline is kept here: first the box is asked to
interrupt the cell, then to kill its kernel, then it is ended itself and replaced for the next cell.
Only a fault outside the box raises `BoxLost`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sandbox import receipt
from sandbox.errors import BoxLost
from sandbox.link import Link
from sandbox.outputs import Execution, Kernel
from sandbox.receipt import Receipt
from sandbox.spec import DEFAULT_IMAGE, BoxSpec, InputFile, Limits, WallChoice
from sandbox.supervisor.spec import EXIT_NEVER_READY, EXIT_NO_KERNEL
from sandbox.supervisor.wire import Frame
from sandbox.wall import Wall
from sandbox.walls import check_limits, choose

PATIENCE = 4.0
"""Grace periods between the request to kill the kernel and the end of the whole box."""
MAX_CODE = 32 * 1024 * 1024
"""Bytes of a cell."""
REPLACED = "The box was replaced: variables, imports and files in the work directory are lost."


@dataclass(slots=True)
class _Running:
    """One cell under way."""

    link: Link
    number: int
    receipt: Receipt
    started: float
    stillborn: bool = False
    """Whether the box had ended before the cell was handed over."""
    late: bool = False
    """Whether the deadline has passed."""


class Box:
    """A stateful Python kernel behind a wall. Made by `open_box`."""

    def __init__(self, wall: Wall, spec: BoxSpec, link: Link) -> None:
        self._wall = wall
        self._spec = spec
        self._link: Link | None = link
        self._dropped: list[Link] = []
        """Ending by themselves; `close` waits for them."""
        self._number = 0
        self._lock = asyncio.Lock()
        self.data_dir = link.connection.data_dir
        """Where the input files are, as seen in the box."""
        self.work_dir = link.connection.work_dir
        self.facts = _facts(wall, link)
        """`wall`, `python`, `packages`, what the box sees of its limits, what is `enforced`."""

    async def run(self, code: str, seconds: float | None = None) -> Execution:
        """Runs one cell; `seconds` of wall time at most (default `Limits.cell_seconds`).

        Raises:
            BoxLost: the box is gone and the cell did not cause it.
        """
        program = code.encode("utf-8", "replace")
        if len(program) > MAX_CODE:
            return _refused(len(program))
        if seconds is None:
            seconds = self._spec.limits.cell_seconds
        async with self._lock:
            cell, done = await self._once(program, seconds)
            replaced = done is None and await self._never_began(cell)
            if replaced:  # of what earlier cells did: it runs in the next box
                await self.close()
                cell, done = await self._once(program, seconds)
            if done is None:
                return await self._lost(cell)
            return await _finished(cell, done, replaced=replaced)

    async def preloaded(self) -> None:
        """Waits until the box has the scientific libraries in memory (or will not have them)."""
        if self._link is not None:
            await self._link.preloaded.wait()

    async def close(self) -> None:
        """Ends the box. Idempotent."""
        link, self._link = self._link, None
        for each in (*self._dropped, link):
            if each is not None:
                await each.close()

    async def _live(self) -> Link:
        if self._link is None:
            self._link = await Link.open(self._wall, self._spec)
            self.data_dir = self._link.connection.data_dir
            self.work_dir = self._link.connection.work_dir
        return self._link

    def _drop(self) -> None:
        if self._link is not None:
            self._link.abandon()
            self._dropped.append(self._link)
            self._link = None

    async def _once(self, program: bytes, seconds: float) -> tuple[_Running, Frame | None]:
        link = await self._live()
        self._number += 1
        receipt = Receipt(self._spec.limits)
        cell = _Running(link, self._number, receipt, time.monotonic(), stillborn=link.ended)
        settled = False
        try:
            done = await self._attempt(link, cell, program, seconds)
            settled = True
        finally:
            if not settled:
                self._drop()  # cancelled: the cell is still running in there
        return cell, done

    async def _attempt(
        self, link: Link, cell: _Running, program: bytes, seconds: float
    ) -> Frame | None:
        """The cell's last frame; None when the box has ended, before or during the cell."""
        try:
            await link.send({"type": "run", "id": cell.number}, (program,))
            return await self._watch(link, cell, seconds)
        except BoxLost:
            return None

    async def _watch(self, link: Link, cell: _Running, seconds: float) -> Frame | None:
        """Waits for the cell's end, enforcing the deadline step by step; None: the box is gone."""
        grace = self._spec.limits.grace_seconds
        steps = [("interrupt", grace), ("kill", PATIENCE * grace)]
        until = cell.started + seconds
        while True:
            try:
                frame = await link.next(until - time.monotonic())
            except TimeoutError:
                cell.late = True
                if not steps:
                    await link.connection.kill()
                    return None
                step, more = steps.pop(0)
                await link.send({"type": step, "id": cell.number})
                until = time.monotonic() + more
                continue
            if frame is None:
                return None
            cell.receipt.take(frame.header, frame.parts)
            if frame.type == "done":
                if receipt.ending(frame.header, late=cell.late) is None:
                    link.forged = True
                    return None
                return frame

    async def _never_began(self, cell: _Running) -> bool:
        """Whether the box had ended of what earlier cells did, or could start no kernel for this
        one."""
        if cell.late or cell.link.began == cell.number or cell.link.forged:
            return False
        cause = await cell.link.connection.why_lost()
        if cause in (None, f"exit:{EXIT_NEVER_READY}"):
            return False
        return cell.stillborn or cause == f"exit:{EXIT_NO_KERNEL}"

    async def _lost(self, cell: _Running) -> Execution:
        """The box ended during the cell. Whose fault was it?"""
        link = cell.link
        seconds = time.monotonic() - cell.started
        cause = "box_lost" if link.forged else None
        if not cell.late and cause is None:
            cause = await link.connection.why_lost()
        self._link = None
        await link.close()
        if cause == f"exit:{EXIT_NEVER_READY}" and not link.began:
            raise BoxLost("no kernel could be started in the box, before any code ran in it")
        if not cell.late and cause is None:
            raise BoxLost("the box is gone and the cell did not end it (engine or host fault)")
        notes = [REPLACED]
        outputs, dropped = await asyncio.to_thread(cell.receipt.read, notes)
        return Execution(
            outputs=outputs,
            status="timeout" if cell.late else "died",
            cause="deadline" if cell.late else cause,
            kernel="restarted",
            seconds=seconds,
            cpu_seconds=0.0,
            peak_mb=0.0,
            dropped=dropped,
            note=" ".join(notes),
        )


async def _finished(cell: _Running, done: Frame, *, replaced: bool) -> Execution:
    header = done.header
    seconds = time.monotonic() - cell.started
    notes = [REPLACED] * replaced + receipt.notes_of(header)
    if cell.receipt.pictures:
        outputs, dropped = await asyncio.to_thread(cell.receipt.read, notes)
    else:
        outputs, dropped = cell.receipt.read(notes)
    ending = receipt.ending(header, late=cell.late)
    assert ending is not None, "looked at when it came"
    status, cause = ending
    lost = replaced or status == "died" or header.get("kernel") == "restarted"
    kernel: Kernel = "restarted" if lost else "kept"
    return Execution(
        outputs=outputs,
        status=status,
        cause=cause,
        kernel=kernel,
        seconds=seconds,
        cpu_seconds=receipt.number(header.get("cpu_seconds")),
        peak_mb=receipt.number(header.get("peak_mb")),
        files=receipt.files_of(header),
        dropped=dropped,
        note=" ".join(dict.fromkeys(notes)) or None,
    )


def _refused(size: int) -> Execution:
    note = f"The cell is too long to be run: {size} bytes, allowed are {MAX_CODE}."
    return Execution((), "error", None, "kept", 0.0, 0.0, 0.0, note=note)


def _facts(wall: Wall, link: Link) -> dict[str, Any]:
    said = link.ready
    return {
        "wall": wall.name,
        "python": said.get("python"),
        "packages": said.get("packages"),
        "box": said.get("facts"),
        "enforced": link.connection.enforced(),
    }


@asynccontextmanager
async def open_box(
    wall: WallChoice | Wall = "auto",
    *,
    inputs: Sequence[InputFile] = (),
    limits: Limits | None = None,
    image: str = DEFAULT_IMAGE,
    run_id: str = "adhoc",
    seed: int = 0,
    runtime: str | None = None,
) -> AsyncGenerator[Box]:
    """A box with the input files in its `data_dir`, gone when the block ends.

    Raises:
        SandboxUnavailable: the wall does not work here.
        LimitsRefused: a box cannot have such limits here.
        InputRefused: an input file cannot be used.
        BoxLost: the host failed.
    """
    spec = BoxSpec(tuple(inputs), limits or Limits(), image, run_id, seed, runtime)
    chosen = await asyncio.to_thread(choose, wall, image) if isinstance(wall, str) else wall
    check_limits(chosen, spec.limits)
    box = Box(chosen, spec, await Link.open(chosen, spec))
    try:
        yield box
    finally:
        await box.close()
