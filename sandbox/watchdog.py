"""Memory of a box without a control group: sampled, and the largest kernel killed above the limit.

Counts what the kernel would: the private share of every process in the box (PSS) and the pages of
its tmpfs mounts. Sampling can be outrun for a moment, which `enforced()` says. The kill is told to
the supervisor through a file in the place where a control group's counters would be.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.spec import Limits

MIB = 1 << 20
SAMPLE_SECONDS = 0.1
PAGE = os.sysconf("SC_PAGE_SIZE")
SCRATCH = ("work", "tmp", "dev/shm")
VICTIM_SCORE = 500
"""Kernels raise their `oom_score_adj` to 1000; supervisor and zygote stay low and are spared."""


@dataclass(slots=True)
class Watchdog:
    """Watches the box whose first process is `pid`."""

    pid: int
    limits: Limits
    counters: Path
    """Folder that the box sees at `/sys/fs/cgroup/memory`."""
    kills: int = field(default=0)

    @staticmethod
    def prepare(folder: Path, limits: Limits) -> None:
        """Writes the counters before the box mounts them."""
        folder.mkdir(parents=True)
        (folder / "memory.limit_in_bytes").write_text(f"{limits.memory_mb * MIB}\n")
        _write_kills(folder, 0)

    async def watch(self) -> None:
        """Runs until cancelled or until the box is gone."""
        while Path(f"/proc/{self.pid}").exists():
            if self._above_limit():
                victim = _largest_victim(_members(self.pid))
                if victim is not None:
                    self.kills += 1
                    # In place: the box has the file itself mounted, not its name.
                    _write_kills(self.counters, self.kills)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
            await asyncio.sleep(SAMPLE_SECONDS)

    def _above_limit(self) -> bool:
        limit = self.limits.memory_mb * MIB
        scratch = _scratch_bytes(self.pid)
        members = _members(self.pid)
        # Resident size counts shared pages once a process: an upper bound that is cheap to read.
        if scratch + sum(_resident(pid) for pid in members) <= limit:
            return False
        return scratch + sum(_proportional(pid) for pid in members) > limit


def _write_kills(folder: Path, kills: int) -> None:
    text = f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n"
    (folder / "memory.oom_control").write_text(text)


def _members(root: int) -> list[int]:
    """A process and all below it. Orphans in the box become children of its first process."""
    found, queue = [root], [root]
    while queue:
        pid = queue.pop()
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                children = [int(child) for child in (task / "children").read_text().split()]
                found += children
                queue += children
    return found


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return 0


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):  # tmpfs pages are counted at their mount
                return int(line.split()[1]) * 1024
    return 0


def _scratch_bytes(pid: int) -> int:
    total = 0
    for name in SCRATCH:
        with contextlib.suppress(OSError):
            usage = os.statvfs(f"/proc/{pid}/root/{name}")
            total += (usage.f_blocks - usage.f_bfree) * usage.f_frsize
    return total


def _largest_victim(members: list[int]) -> int | None:
    victims: list[tuple[int, int]] = []
    for pid in members:
        with contextlib.suppress(OSError, ValueError):
            if int(Path(f"/proc/{pid}/oom_score_adj").read_text()) >= VICTIM_SCORE:
                victims.append((_resident(pid), pid))
    return max(victims)[1] if victims else None
