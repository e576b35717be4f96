"""What counts a bubblewrap box's memory and processes: a control group, else a watchdog."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import resource
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.cgroups import Group, make_group
from sandbox.closing import to_the_end
from sandbox.identity import this_process
from sandbox.inputs import staging_root
from sandbox.spec import Limits
from sandbox.watchdog import Watchdog

MIB = 1 << 20


@dataclass(slots=True)
class Accounting:
    """One box's limits that no mount or namespace gives. Exactly one of the first two is set."""

    limits: Limits
    group: Group | None
    counters: Path | None
    refusal: str
    """Why there is no control group; empty when there is one."""
    private_process_count: bool
    """Whether RLIMIT_NPROC counts this box's processes alone."""
    watchdog: Watchdog | None = None

    def mounts(self) -> tuple[tuple[str, str], ...]:
        """(host folder, box path) of the counters that the supervisor reads."""
        if self.group is not None:
            return tuple(self.group.mounts())
        return ((str(self.counters), "/sys/fs/cgroup/memory"),)

    def apply(self, pid: int) -> None:
        """Limits a box whose first program has not started. Call in the event loop's thread.

        Raises:
            OSError: the kernel refused; the box must not start.
        """
        # Above every tmpfs, so that a full disk says ENOSPC and not SIGXFSZ.
        limits = self.limits
        file_bytes = (max(limits.work_mb, limits.tmp_mb, limits.shm_mb) + 64) * MIB
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        files = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, files))
        if self.group is not None:
            self.group.add(pid)
            return
        if self.private_process_count:
            resource.prlimit(pid, resource.RLIMIT_NPROC, (limits.pids, limits.pids))
        assert self.counters is not None, "without a group there is a folder of counters"
        self.watchdog = Watchdog(pid, limits, self.counters)

    def oom_kills(self) -> int:
        """Processes that the memory limit has killed so far."""
        if self.group is not None:
            return self.group.oom_kills()
        return self.watchdog.kills if self.watchdog else 0

    def limit_killed(self) -> bool:
        """Whether a process was killed because the box had used all of its memory."""
        reached = self.group.limit_reached() if self.group is not None else True
        return reached and self.oom_kills() > 0

    def enforced(self) -> dict[str, str]:
        """name → `yes` or why not, for memory, swap, CPU and processes."""
        if self.group is not None:
            cpus = "yes" if "cpu" in self.group.folders else "no cpu control group"
            return {"memory": "yes", "swap": "yes", "cpus": cpus, "pids": "yes"}
        alone = "yes" if self.private_process_count else "this kernel counts processes per user"
        return {
            "memory": f"sampled ten times a second, not by the kernel: {self.refusal}",
            "swap": f"not limited: {self.refusal}",
            "cpus": f"not limited: {self.refusal}",
            "pids": alone,
        }


@asynccontextmanager
async def accounting(
    limits: Limits, own_uid: bool, control_groups: bool
) -> AsyncGenerator[Accounting]:
    """Makes the group (or the watchdog's folder) of one box and removes it when the box is gone."""
    counters: Path | None = None
    group, refusal = _group(limits) if control_groups else (None, "control groups are not wanted")
    if group is None:
        folder = Path(tempfile.mkdtemp(dir=staging_root(), prefix=f"{this_process()}."))
        folder.chmod(0o755)
        counters = folder / "memory"
        Watchdog.prepare(counters, limits)
    try:
        yield Accounting(limits, group, counters, refusal, own_uid or _counts_per_namespace())
    finally:
        if group is not None:
            await to_the_end(asyncio.to_thread(group.remove))
        elif counters is not None:
            shutil.rmtree(counters.parent, ignore_errors=True)


def _group(limits: Limits) -> tuple[Group | None, str]:
    try:
        return make_group(limits), ""
    except OSError as error:
        return None, f"no control group can be made ({error.strerror or error})"


def _counts_per_namespace() -> bool:
    """Since Linux 5.14 RLIMIT_NPROC counts each user namespace by itself; it never binds root."""
    with contextlib.suppress(ValueError):
        release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
        return os.geteuid() != 0 and release >= (5, 14)
    return False
