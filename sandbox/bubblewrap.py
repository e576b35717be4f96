"""The bubblewrap wall: namespaces and a read-only view of this host's Python; no daemon, no image.

The runner's child is bwrap, whose child is the supervisor as the first process of its own process
namespace. Both die with the runner; the stream is a socket pair.

Protected: network, the host's files (nothing of the home directory is mounted), other boxes, disk,
and by control group or watchdog memory and processes; a seccomp filter takes the kernel's rarer
calls. Not protected: the kernel itself; as an ordinary user, CPU time.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import signal
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox import hostmemory
from sandbox.accounting import Accounting, accounting
from sandbox.bpf import compile_filter
from sandbox.bwrap_command import Flavour, Place, arguments, program
from sandbox.bwrap_spawn import Spawned, spawn
from sandbox.closing import to_the_end
from sandbox.errors import BoxLost
from sandbox.home import staged_supervisor
from sandbox.hostpython import Layout
from sandbox.identity import FIRST_UID, UIDS
from sandbox.inputs import staged
from sandbox.launch import SUPERVISOR_DIR
from sandbox.spec import BoxSpec, Limits, WallName
from sandbox.stream import CHUNK_BYTES, BoxStream, Tail


@dataclass(frozen=True, slots=True)
class BubblewrapWall:
    """Makes boxes with one bwrap program. Use `sandbox.bwrap_probe.find_bubblewrap()`."""

    bwrap: Path
    flavour: Flavour
    nested: bool
    """Whether bwrap can forbid further user namespaces here."""
    layout: Layout
    supervisor: Path = SUPERVISOR_DIR
    control_groups: bool = True
    """Whether to use control groups where they can be made; else the watchdog counts."""
    name: WallName = "bubblewrap"

    @asynccontextmanager
    async def open(self, spec: BoxSpec) -> AsyncGenerator[BubblewrapConnection]:
        own_uid = self.flavour == "own_uid"
        with staged(spec.inputs) as inputs:
            async with accounting(spec.limits, own_uid, self.control_groups) as counting:
                uid = FIRST_UID + secrets.randbelow(UIDS)
                place = Place(staged_supervisor(self.supervisor), inputs, uid, counting.mounts())
                connection = await self._start(place, counting)
                try:
                    yield connection
                finally:
                    # Shielded: a cancelled runner still ends its box before it goes.
                    await to_the_end(connection.end())

    async def _start(self, place: Place, counting: Accounting) -> BubblewrapConnection:
        try:
            with ExitStack() as fds:
                command, passed = self.command(fds, place, counting.limits)
                spawned = spawn(command, program(self.flavour, place.uid), passed)
        except OSError as error:
            raise BoxLost(f"{self.bwrap} cannot be run: {error.strerror}") from error
        connection = BubblewrapConnection(spawned, counting, self.enforced(counting))
        released = False
        try:
            await connection.release()
            released = True
        finally:
            if not released:
                await to_the_end(connection.end())
        return connection

    def command(self, fds: ExitStack, place: Place, limits: Limits) -> tuple[list[str], list[int]]:
        """bwrap with its options, and the descriptors that it inherits."""
        options, files = arguments(self.flavour, self.layout, limits, place, nested=self.nested)
        passed: list[int] = []

        def inherit(data: bytes) -> str:
            fd = os.memfd_create("potrunner")
            fds.callback(os.close, fd)
            os.write(fd, data)
            os.lseek(fd, 0, os.SEEK_SET)
            passed.append(fd)
            return str(fd)

        first: list[str] = []
        for text, path in files:
            first += ["--perms", "0444", "--file", inherit(text.encode()), path]
        calls = compile_filter(platform.machine())
        if calls is not None:
            first += ["--seccomp", inherit(calls)]
        everything = "\0".join([*first, *options]).encode() + b"\0"
        return [str(self.bwrap), "--args", inherit(everything)], passed

    def enforced(self, counting: Accounting) -> dict[str, str]:
        """name → `yes` or why not."""
        machine = platform.machine()
        known = compile_filter(machine) is not None
        user = "yes" if self.flavour == "own_uid" or os.geteuid() else "root's, without its rights"
        return {
            "network": "yes",
            "read_only_root": "yes",
            "read_only_inputs": "yes",
            **counting.enforced(),
            "disk": "yes",
            "user": user,
            "capabilities": "yes",
            "seccomp": "yes" if known else f"none: no table of system calls for {machine}",
            "host_files": "yes",
            "host_packages": "yes",
            "cgroup": f"v{counting.group.version}" if counting.group else "none",
        }


class BubblewrapConnection:
    """The stream of one box, and the box's first process."""

    data_dir = "/mnt/data"
    work_dir = "/work"

    def __init__(self, spawned: Spawned, counting: Accounting, enforced: dict[str, str]) -> None:
        self._spawned = spawned
        self._counting = counting
        self._enforced = enforced
        self._errors = Tail()
        self._stream: BoxStream | None = None
        self._watch: asyncio.Task[None] | None = None
        self._ended = False
        self._host_kills = hostmemory.oom_kills()

    @property
    def diagnosis(self) -> str:
        """The last that the supervisor, or bwrap before it, wrote to standard error."""
        return self._errors.text

    async def release(self) -> None:
        """Sets the limits of the waiting first process and lets it start.

        Raises:
            BoxLost: bwrap failed, or the kernel refused a limit.
        """
        spawned = self._spawned
        asyncio.get_running_loop().add_reader(spawned.errors, self._drain_errors)
        pid = await spawned.first_process()
        if pid is None:
            await asyncio.to_thread(spawned.kill_and_wait)
            self._drain_errors()
            raise BoxLost(f"bubblewrap could not make a box: {self.diagnosis or 'no reason given'}")
        try:
            self._counting.apply(pid)
        except OSError as error:
            raise BoxLost(f"a box's limits could not be set: {error}") from error
        self._stream = await BoxStream.over_socket(spawned.stream)
        spawned.go_on()
        if self._counting.watchdog is not None:
            self._watch = asyncio.create_task(self._counting.watchdog.watch())

    async def read(self) -> bytes:
        return await self._stream.read() if self._stream else b""

    async def write(self, data: bytes) -> None:
        assert self._stream is not None, "released first"
        await self._stream.write(data)

    async def kill(self) -> None:
        await to_the_end(self.end())

    async def why_lost(self) -> str | None:
        if self._ended:
            return None
        code = await asyncio.to_thread(self._spawned.wait)
        self._drain_errors()
        if code is None:
            return "box_lost"  # it closed its stream and lives on: nobody outside did that
        if code < 0:
            return None  # bwrap itself was killed
        if code == 128 + signal.SIGKILL:
            # No signal from inside reaches a first process, and the filter guards its limits:
            # without the memory limit it was the host.
            return "out_of_memory" if self._counting.limit_killed() else None
        cause = f"signal:{code - 128}" if code > 128 else f"exit:{code}"
        own_limit = self._counting.limit_killed()
        return hostmemory.settle(cause, self._host_kills, own_limit=own_limit)

    def enforced(self) -> dict[str, str]:
        return dict(self._enforced)

    async def end(self) -> None:
        """Kills every process of the box and waits for it. Idempotent."""
        if self._ended:
            return
        self._ended = True
        if self._stream is not None:
            self._stream.close()
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.to_thread(self._spawned.kill_and_wait)
        self._drain_errors()
        asyncio.get_running_loop().remove_reader(self._spawned.errors)
        self._spawned.close()

    def _drain_errors(self) -> None:
        try:
            while data := os.read(self._spawned.errors, CHUNK_BYTES):
                self._errors.add(data)
        except BlockingIOError:
            return
        # The other end is closed; a closed pipe is always readable.
        asyncio.get_running_loop().remove_reader(self._spawned.errors)
