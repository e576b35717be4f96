"""Who owns a box: the host, the process and the moment it started.

A box may be swept away only when its owner is dead. A pid alone says too little (pids are reused,
and containers of one engine may have owners in several pid namespaces), so labels carry all three.
"""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

LABEL = "potrunner"
"""On every container, with `.run`, `.host`, `.pid` and `.start` beside it: who owns the box."""
FIRST_UID, UIDS = 1_900_000_000, 100_000_000
"""Users that no host hands out: each box gets one of its own where the wall can choose."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One process of one host, told apart from any later process with the same pid."""

    host: str
    pid: int
    start: str

    @property
    def alive(self) -> bool:
        """Whether the owner still runs. One that cannot be seen from here is never called dead."""
        if self.host != host_id():
            return True
        start = process_start(self.pid)
        return start == self.start or (start is None and _hidden(self.pid))

    def __str__(self) -> str:
        return f"{self.host}.{self.pid}.{self.start}"

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Reads what `str` wrote; None when it is something else."""
        parts = text.split(".")
        if len(parts) != 3 or not parts[1].isascii() or not parts[1].isdigit():
            return None
        return cls(parts[0], int(parts[1]), parts[2])


def this_process() -> Owner:
    """The owner of everything that this process makes."""
    return Owner(host_id(), os.getpid(), process_start(os.getpid()) or "unknown")


def host_id() -> str:
    """Stable over reboots; differs between machines and between pid namespaces of one machine."""
    facts = [platform.node()]
    machine = Path("/etc/machine-id")
    if machine.is_file():
        facts.append(machine.read_text().strip())
    namespace = Path("/proc/self/ns/pid")
    if namespace.exists():
        facts.append(str(namespace.readlink()))
    return hashlib.sha256("|".join(facts).encode()).hexdigest()[:12]


def process_start(pid: int) -> str | None:
    """When a process started, as no other process of this pid can have; None if dead."""
    if not Path("/proc/self/stat").exists():
        return _process_start_elsewhere(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return None
    # The second field is the command in brackets and may hold anything; count after the last one.
    state, *rest = stat[stat.rindex(")") + 2 :].split()
    return None if state in "ZX" else f"{boot[:8]}-{rest[18]}"


def _hidden(pid: int) -> bool:
    """Whether a process of another user is there although /proc does not show it (`hidepid`)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return not Path(f"/proc/{pid}").exists()
    except (OSError, OverflowError):
        return False
    return False


def _process_start_elsewhere(pid: int) -> str | None:
    import psutil  # comes with ipykernel; needed only where there is no /proc

    try:
        return f"{psutil.Process(pid).create_time():.3f}".replace(".", "-")
    except psutil.Error:
        return None


def owner_labels(owner: Owner, run_id: str) -> dict[str, str]:
    """The labels of a container of this owner."""
    return {
        LABEL: "1",
        f"{LABEL}.run": run_id,
        f"{LABEL}.host": owner.host,
        f"{LABEL}.pid": str(owner.pid),
        f"{LABEL}.start": owner.start,
    }
