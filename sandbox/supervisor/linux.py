"""What the supervisor asks of Linux: prctl, the process tree, CPU and memory of a process.

Everything reads /proc of the box; nothing here trusts what a kernel says about itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

_TICK = os.sysconf("SC_CLK_TCK")
_STORM = 20
DYING_SECONDS = 0.3
_PAGE = os.sysconf("SC_PAGE_SIZE")
_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> bool:
    """True when the kernel accepted it."""
    return _libc.prctl(option, value, 0, 0, 0) == 0


def flush_c_streams() -> None:
    """Writes out what C code has printed into its own buffers."""
    _libc.fflush(None)


def threads() -> int:
    """Threads of this process."""
    return len(_entries("/proc/self/task"))


def _entries(directory: str) -> list[Path]:
    try:
        return list(Path(directory).iterdir())
    except OSError:
        return []


def stat(pid: int) -> tuple[str, int, float, int] | None:
    """State letter, parent, CPU seconds of waited-for children, resident bytes; None when gone.

    A process whose first thread has ended but others have not looks dead to Linux (`Z`); it is not,
    and its state is given as `R` here.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    children = (int(fields[13]) + int(fields[14])) / _TICK
    if fields[0] == b"Z" and int(fields[17]) > 1:
        return "R", int(fields[1]), children, _status_bytes(_living_thread(pid), "VmRSS:")
    return fields[0].decode(), int(fields[1]), children, int(fields[21]) * _PAGE


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, its dead threads and its waited-for children."""
    found = stat(pid)
    if found is None:
        return 0.0
    try:
        # The kernel's own encoding of "CPU clock of process N", nanoseconds where stat has ticks.
        own = time.clock_gettime((~pid << 3) | 2)
    except OSError:
        own = 0.0
    return own + found[2]


def reset_peak(pid: int) -> None:
    """Makes `peak_bytes` count from now."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_bytes(pid: int) -> int:
    """Highest resident memory since `reset_peak`; 0 when gone."""
    own = _status_bytes(Path(f"/proc/{pid}"), "VmHWM:")
    return own or _status_bytes(_living_thread(pid), "VmHWM:")


def _living_thread(pid: int) -> Path:
    """The folder of a thread that still has the process's memory; the first has it no more once it
    has ended."""
    tasks = _entries(f"/proc/{pid}/task")
    return next((task for task in tasks if task.name != str(pid)), Path(f"/proc/{pid}"))


def _status_bytes(folder: Path, key: str) -> int:
    """A size of /proc's `status`; 0 when it is gone."""
    try:
        text = (folder / "status").read_text()
    except (OSError, UnicodeDecodeError):
        return 0
    for line in text.splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def children(pid: int) -> list[int]:
    """Direct children, those of every thread."""
    found: list[int] = []
    for task in _entries(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(root: int) -> dict[int, int]:
    """Every living process below `root`, pid → resident bytes. Orphans of a sub-reaper are its
    children, so nothing can leave the tree."""
    below: dict[int, int] = {}
    left = children(root)
    while left:
        pid = left.pop()
        found = stat(pid)
        if found is None or pid in below or found[0] in "ZX":
            continue
        below[pid] = found[3]
        left += children(pid)
    return below


def kill_below(
    spare: frozenset[int],
    before: Callable[[set[int]], None] = lambda _: None,
    seconds: float = 2.0,
) -> int:
    """Kills every process below this one but `spare`; stops them first, so that none forks away.

    `before` sees them while they can still be measured. Returns how many there were. Gives up after
    `seconds`: what is left then hangs in the Linux kernel.
    """
    seen: set[int] = set()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = descendants(os.getpid()).keys() - spare
        for pid in found:
            _signal(pid, signal.SIGSTOP)
        if found <= seen:
            break
        seen |= found
    before(seen)
    for pid in seen:
        _signal(pid, signal.SIGKILL)
    until = time.monotonic() + DYING_SECONDS
    while any(map(_is_alive, seen)) and time.monotonic() < until:
        time.sleep(0.0005)  # else the next cell would still see, and count, what is dying
    return len(seen)


def _is_alive(pid: int) -> bool:
    found = stat(pid)
    return found is not None and found[0] not in "ZX"


def kill_all(spare: frozenset[int]) -> None:
    """As `kill_below`; against a storm of forks in a process namespace of our own, where even this
    program would hardly get a turn, with one call that spares nobody."""
    if os.getpid() == 1 and len(children(1)) > _STORM:
        os.kill(-1, signal.SIGKILL)
    else:
        kill_below(spare)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
