"""The process wall's watchdog: memory, processes and disk of a process tree, sampled.

Where no control group does it, it kills the kernels and their children above the limits, not the
supervisor, and tells it why through the same counters that a group would have. Too many files end
the whole box.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from sandbox.spec import Limits
from sandbox.supervisor import linux

SAMPLE_SECONDS = 0.05
DISK_EVERY = 10
"""Samples between two looks at the disk."""
MIB = 1 << 20
KERNEL_SCORE = 1000
"""Kernels and their children set this `oom_score_adj`; supervisor and zygotes do not."""
SPARE_PROCESSES = 4
"""Supervisor and zygotes, which do not count against the limit."""


@dataclass(slots=True)
class TreeWatch:
    """`run` until cancelled or until the supervisor is gone."""

    limits: Limits
    folders: tuple[Path, ...]
    counters: Path | None
    """Where to write what was killed; None when a control group counts memory and processes."""
    root: int = 0
    """The supervisor's pid."""
    cause: str | None = None
    """Why the whole box was ended, if it was."""
    oom_kills: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self._tell()

    async def run(self) -> None:
        samples = 0
        while linux.stat(self.root) is not None:
            if self.counters is not None:
                self._look()
            samples += 1
            if samples % DISK_EVERY == 0 and await asyncio.to_thread(self._disk_full):
                self.cause = "box_lost"
                _kill(self.root)
                return
            await asyncio.sleep(SAMPLE_SECONDS)

    def _look(self) -> None:
        below = linux.descendants(self.root)
        if len(below) > self.limits.pids + SPARE_PROCESSES:
            self.refused += 1
        elif self._too_much(below):
            self.oom_kills += 1
        else:
            return
        self._tell()
        self._end()

    def _tell(self) -> None:
        if self.counters is not None:
            (self.counters / "memory.events").write_text(f"oom_kill {self.oom_kills}\n")
            (self.counters / "pids.events").write_text(f"max {self.refused}\n")

    def _too_much(self, below: dict[int, int]) -> bool:
        limit = self.limits.memory_mb * MIB
        # Resident size counts shared pages once a process: an upper bound that is cheap to read.
        if sum(below.values()) <= limit:
            return False
        return sum(map(proportional_bytes, below)) > limit

    def _end(self) -> None:
        """Ends kernels and their children. Stopped first, until no more appear: a storm of forks
        would outrun a single pass."""
        guilty: set[int] = set()
        while True:
            found = {pid for pid in linux.descendants(self.root) if _score(pid) >= KERNEL_SCORE}
            if found <= guilty:
                break
            for pid in found - guilty:
                _kill(pid, signal.SIGSTOP)
            guilty |= found
        for pid in guilty:
            _kill(pid)

    def _disk_full(self) -> bool:
        limit = (self.limits.work_mb + self.limits.tmp_mb) * MIB
        return sum(map(_folder_bytes, self.folders)) > limit


def proportional_bytes(pid: int) -> int:
    """Memory of a process, shared pages divided among those who share them; 0 when gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _score(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())
    return 0


def _kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _folder_bytes(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{parent}/{name}").st_blocks * 512
    return total
