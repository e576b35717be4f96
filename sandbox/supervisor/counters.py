"""The box's own counters of deaths by the memory limit and of refused forks.

They come from the cgroup files that the box can see (version 1 or 2); where it sees none, the whole
machine's count of out-of-memory kills has to do.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "POTRUNNER_COUNTERS"
"""Where a wall cannot mount the counters, it says by this where they lie."""
_ROOT = Path(os.environ.get(VARIABLE, "/sys/fs/cgroup"))
_OOM = (_ROOT / "memory.events", _ROOT / "memory/memory.oom_control", Path("/proc/vmstat"))
_PEAKS = (
    (_ROOT / "memory.peak", _ROOT / "memory.max"),
    (_ROOT / "memory/memory.max_usage_in_bytes", _ROOT / "memory/memory.limit_in_bytes"),
)
_NEAR = 16 << 20
"""Bytes below the limit at which an allocation may already be refused: pages come in blocks."""
_PIDS = (_ROOT / "pids.events", _ROOT / "pids/pids.events")
_STATS = (_ROOT / "memory.stat", _ROOT / "memory/memory.stat")
ROOM_BYTES = 96 << 20
"""What the supervisor, a zygote and a kernel need to run a small cell."""
_MEMORY_LIMITS = (_ROOT / "memory.max", _ROOT / "memory/memory.limit_in_bytes")
_PIDS_LIMITS = (_ROOT / "pids.max", _ROOT / "pids/pids.max")


@dataclass(frozen=True, slots=True)
class Counters:
    """Values only ever grow; compare two readings."""

    oom_kills: int
    refused_forks: int
    limit_reached: bool = True
    """Whether the box has ever used all of its memory; True as well where that cannot be seen."""


def read() -> Counters:
    return Counters(_first(_OOM, "oom_kill"), _first(_PIDS, "max"), _limit_reached())


def limits() -> dict[str, str]:
    """Memory and process limits as the box sees them; empty where it sees no cgroup."""
    seen: dict[str, str] = {}
    for name, paths in (("memory_bytes", _MEMORY_LIMITS), ("pids", _PIDS_LIMITS)):
        for path in paths:
            try:
                seen[name] = path.read_text().strip()
                break
            except OSError:
                continue
    return seen


def has_room() -> bool:
    """Whether files leave memory for a kernel; True where the box sees no cgroup."""
    limit = limits().get("memory_bytes", "")
    held = _first(_STATS, "total_shmem") or _first(_STATS, "shmem")
    return not limit.isdigit() or int(limit) - held >= ROOM_BYTES


def _limit_reached() -> bool:
    for peak, limit in _PEAKS:
        try:
            return int(peak.read_text()) >= int(limit.read_text()) - _NEAR
        except (OSError, ValueError):
            continue
    return True


def _first(paths: tuple[Path, ...], key: str) -> int:
    """The value of `key` in the first file that has it."""
    for path in paths:
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, value = line.partition(" ")
            if name == key and value.strip().isdigit():
                return int(value)
    return 0
