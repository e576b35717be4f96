"""The process wall: a child process and nothing else. No isolation; asked for by name, for demos
and for machines that offer no other wall.

Covered: its own session, a clean environment, temporary folders, an end with the runner's end,
memory and processes by a control group where one can be made (as root, as a rule) and by a watchdog
elsewhere, disk by a watchdog. Not covered: network, the host's files, other processes of the same
user; a program that means harm does it. `enforced()` says each.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox import hostmemory
from sandbox.cgroups import Group, make_group
from sandbox.closing import to_the_end
from sandbox.errors import BoxLost, SandboxUnavailable
from sandbox.home import staged_supervisor, temporary_home
from sandbox.identity import this_process
from sandbox.inputs import check_inputs
from sandbox.launch import ENVIRONMENT, PYTHON_FLAGS, SUPERVISOR_DIR
from sandbox.reap_child import FOLDER_PREFIX, OWNER_FILE
from sandbox.spec import BoxSpec, Limits, WallName
from sandbox.stream import CHUNK_BYTES, BoxStream
from sandbox.supervisor import linux
from sandbox.treewatch import TreeWatch

END_SECONDS = 5.0
_NONE = "no: the process wall does not isolate"


@dataclass(frozen=True, slots=True)
class ProcessWall:
    """Runs cells as ordinary processes of this user."""

    control_group: bool = True
    """False: only the watchdog, as on a machine where no group can be made."""
    name: WallName = "process"

    @asynccontextmanager
    async def open(self, spec: BoxSpec) -> AsyncGenerator[ProcessConnection]:
        if sys.platform != "linux":
            raise SandboxUnavailable(
                f"expected Linux for the process wall, found {sys.platform}; use --sandbox docker"
            )
        check_inputs(spec.inputs)
        try:
            folder = Path(await asyncio.to_thread(_lay_out, spec))
        except OSError as error:
            raise BoxLost(f"no temporary folder for a box: {error}") from error
        connection: ProcessConnection | None = None
        group = _group(spec.limits, folder / "counters") if self.control_group else None
        try:
            connection = await _start(folder, spec.limits, group)
            yield connection
        finally:
            # Shielded: a cancelled runner still ends its box before it goes.
            if connection is not None:
                await to_the_end(connection.end())
            if group is not None:
                await to_the_end(asyncio.to_thread(group.remove))
            await to_the_end(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))


class ProcessConnection:
    """The pipes of one supervisor."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        folder: Path,
        watch: TreeWatch,
        limits: Limits,
        group: Group | None,
    ) -> None:
        assert process.stdin is not None, "both streams are pipes"
        assert process.stdout is not None, "both streams are pipes"
        assert process.stderr is not None, "both streams are pipes"
        self.data_dir = str(folder / "data")
        self.work_dir = str(folder / "work")
        self._process = process
        self._errors = process.stderr
        self._stream = BoxStream(process.stdout, process.stdin)
        self._watch = watch
        self._limits = limits
        self._group = group
        self._ended = False
        self._host_kills = hostmemory.oom_kills()
        self._tasks = [
            asyncio.create_task(self._drain_errors()),
            asyncio.create_task(watch.run()),
        ]

    @property
    def diagnosis(self) -> str:
        """The last that the supervisor wrote to standard error."""
        return self._stream.errors.text

    async def read(self) -> bytes:
        return await self._stream.read()

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)

    async def kill(self) -> None:
        await to_the_end(self.end())

    async def why_lost(self) -> str | None:
        if self._ended:
            return None
        try:
            code = await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            return "box_lost"  # it closed its stream and lives on: nobody outside did that
        if self._watch.cause is not None:
            return self._watch.cause
        group = self._group
        own_limit = group is not None and group.limit_reached() and group.oom_kills() > 0
        if code == -signal.SIGKILL and own_limit:
            return "out_of_memory"
        cause = f"signal:{-code}" if code < 0 else f"exit:{code}"
        return hostmemory.settle(cause, self._host_kills, own_limit=own_limit)

    def enforced(self) -> dict[str, str]:
        limits = self._limits
        counted = "yes" if self._group else "sampled 20 times a second, not by the kernel"
        quota = self._group is not None and "cpu" in self._group.folders
        return {
            "network": _NONE,
            "read_only_root": _NONE,
            "read_only_inputs": "no: the box gets copies, which its user may change",
            "memory": counted,
            "cpus": "yes" if quota else "no: no cpu control group",
            "pids": counted,
            "disk": f"a file ends at {limits.work_mb} MiB; a box with more in sum is ended",
            "user": "no: this user",
            "capabilities": "no: this user's",
            "seccomp": "no: no filter",
            "host_files": _NONE,
            "host_packages": "hidden from kernels; child processes can import them",
        }

    async def end(self) -> None:
        """Kills every process of the box. Idempotent."""
        if self._ended:
            return
        self._ended = True
        self._stream.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(kill_tree, self._process.pid)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
                while await self._stream.read():  # to its end, so that the pipes are closed
                    pass
                await self._drain_errors()

    async def _drain_errors(self) -> None:
        while data := await self._errors.read(CHUNK_BYTES):
            self._stream.errors.add(data)


def kill_tree(root: int) -> None:
    """Kills a process and all below it, stopped first so that none forks away. Orphans of the
    supervisor stay below it, so nothing can hide."""
    seen: set[int] = set()
    while True:
        found = {root, *linux.descendants(root)}
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        if found <= seen:
            break
        seen |= found
    for pid in sorted(seen, key=lambda pid: pid == root):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _lay_out(spec: BoxSpec) -> str:
    """data/ with the inputs, empty work/ and tmp/."""
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=temporary_home()))
    try:
        (folder / OWNER_FILE).write_text(str(this_process()))
        for name in ("data", "work", "tmp", "counters"):
            (folder / name).mkdir()
        for file in spec.inputs:
            path = folder / "data" / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
            path.chmod(0o444)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return str(folder)


def _group(limits: Limits, counters: Path) -> Group | None:
    """A control group, its counters where the supervisor looks; None where none can be made."""
    try:
        group = make_group(limits)
    except OSError:
        return None
    for folder, box_path in group.mounts():
        target = counters / Path(box_path).relative_to("/sys/fs/cgroup")
        if target == counters:
            counters.rmdir()
        target.symlink_to(folder)
    return group


async def _start(folder: Path, limits: Limits, group: Group | None) -> ProcessConnection:
    python = Path(sys.executable)
    environment = {
        **ENVIRONMENT,
        "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
        "TMPDIR": str(folder / "tmp"),
        "POTRUNNER_COUNTERS": str(folder / "counters"),
    }
    counters = None if group else folder / "counters"
    watch = TreeWatch(limits, (folder / "work", folder / "tmp"), counters)
    try:
        process = await asyncio.create_subprocess_exec(
            *(str(python), *PYTHON_FLAGS, str(staged_supervisor(SUPERVISOR_DIR))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=CHUNK_BYTES,
            env=environment,
            cwd=folder / "work",
            umask=0o022,  # a box is the same whatever the runner's is
            start_new_session=True,  # Ctrl-C is for the runner, which ends its boxes
        )
        largest = limits.work_mb * 1024 * 1024
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (largest, largest))
        if group is not None:
            group.add(process.pid)
    except OSError as error:
        raise BoxLost(f"{python} cannot be run: {error}") from error
    watch.root = process.pid
    return ProcessConnection(process, folder, watch, limits, group)
