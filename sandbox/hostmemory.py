"""When the machine, not a box, ran out of memory.

The kernel then picks its victims among all processes, cells first: they ask for it, so that nothing
of the user's is taken. A box whose kernel was taken that way says so by its exit code; whether that
can be is looked up here, so that no box can excuse itself.
"""

from __future__ import annotations

from pathlib import Path

from sandbox.supervisor.spec import EXIT_HOST_MEMORY

VMSTAT = Path("/proc/vmstat")


def oom_kills(vmstat: Path = VMSTAT) -> int | None:
    """Processes killed for want of memory since the machine started; None where it does not say."""
    try:
        lines = vmstat.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def settle(cause: str | None, before: int | None, *, own_limit: bool) -> str | None:
    """A box's cause of death; None, a fault of the machine, only if it has killed since `before`
    and the box's own limit had no part in it."""
    if cause != f"exit:{EXIT_HOST_MEMORY}":
        return cause
    now = oom_kills()
    machine = before is None or now is None or now > before
    return None if machine and not own_limit else "out_of_memory"
