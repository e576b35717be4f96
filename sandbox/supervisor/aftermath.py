"""What is looked at when a cell is over: saved pictures, sizes, limits that were hit, how a kernel
died."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from . import shrink
from .counters import Counters
from .files import MAX_LISTED, Change, WorkDir
from .items import Picture
from .output import Output
from .terminal import encodable

PICTURE_SECONDS = 4.0
"""For all pictures of a cell that must be converted."""


@dataclass(frozen=True, slots=True)
class CellLimits:
    chars: int
    pictures: int
    pixels: int
    memory_mb: int
    pids: int


def taken_by_host(status: int, before: Counters, now: Counters) -> bool:
    """Whether the machine's memory ran out, not the box's: its own limit was never reached."""
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return killed and now.oom_kills > before.oom_kills and not now.limit_reached


def lost(status: int, before: Counters, now: Counters) -> str:
    """What the model is told of a kernel that ended between two cells."""
    return (
        f"The kernel had ended since the last cell ({death(status, before, now)}): all variables "
        "and imports are lost; files are kept."
    )


def death(status: int, before: Counters, now: Counters) -> str:
    """The cause's name, from the wait status and the box's counters."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGKILL and now.oom_kills > before.oom_kills:
            return "out_of_memory"
        if now.refused_forks > before.refused_forks:
            return "too_many_processes"
        return f"signal:{number}"
    return f"exit:{os.waitstatus_to_exitcode(status)}"


def show_saved(output: Output, work: WorkDir, changes: list[Change], limits: CellLimits) -> None:
    """Pictures saved in the work directory are shown like any other."""
    saved = [change for change in changes if change.is_picture]
    for change in saved[-2 * limits.pictures :]:
        data = work.read(change.path)
        if data:
            output.screen.show(data)


def fit_pictures(output: Output, limits: CellLimits) -> None:
    """Makes PNG of what is neither PNG nor JPEG, and smaller what is too large."""
    until = time.monotonic() + PICTURE_SECONDS
    items = output.screen.items
    for index, item in enumerate(items):
        if not isinstance(item, Picture):
            continue
        fitted = shrink.fit(item.data, limits.pixels, until - time.monotonic())
        if fitted.note:
            output.note(fitted.note)
        if fitted.data is not item.data:
            items[index] = Picture(fitted.data or b"", item.display_id)
    output.screen.items = [i for i in items if not isinstance(i, Picture) or i.data]


def remarks(output: Output, limits: CellLimits, before: Counters, now: Counters) -> None:
    """Limits that were hit, whether the kernel survived or not."""
    if now.refused_forks > before.refused_forks:
        output.note(f"The limit of {limits.pids} processes was reached.")
    if now.oom_kills > before.oom_kills and now.limit_reached:
        output.note(
            f"The memory limit of {limits.memory_mb} MiB was reached; a process was killed."
        )


def listed(output: Output, changes: list[Change]) -> list[dict[str, Any]]:
    """The files for the report, the latest where there are too many."""
    if len(changes) > MAX_LISTED:
        output.note(f"{len(changes)} files changed; the last {MAX_LISTED} are listed.")
    return [{"path": encodable(c.path), "bytes": c.bytes} for c in changes[-MAX_LISTED:]]
