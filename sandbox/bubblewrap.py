"""The bubblewrap wall: namespaces and a read-only view of this host's Python; no daemon, no image.

The runner's child is bwrap, whose child is the supervisor as the first process of its own process
namespace. Both die with the runner; the stream is a pair of pipes.

Protected: network, the host's files (nothing of the home directory is mounted), other boxes, disk,
and by control group or watchdog memory and processes; a seccomp filter takes the kernel's rarer
calls. Not protected: the kernel itself; as an ordinary user, CPU time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import secrets
import select
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.accounting import Accounting, accounting
from sandbox.bpf import compile_filter
from sandbox.bwrap_command import Flavour, Place, arguments, program
from sandbox.errors import BoxLost
from sandbox.home import staged_supervisor
from sandbox.hostpython import Layout
from sandbox.inputs import staged
from sandbox.spec import BoxSpec, Limits, WallName
from sandbox.stream import CHUNK_BYTES, BoxStream

START_SECONDS = 20.0
END_SECONDS = 10.0
FIRST_UID, UIDS = 1_900_000_000, 100_000_000
"""Users that no host hands out: each box of a root runner gets one of its own."""


@dataclass(frozen=True, slots=True)
class BubblewrapWall:
    """Makes boxes with one bwrap program. Use `sandbox.bwrap_probe.find_bubblewrap()`."""

    bwrap: Path
    flavour: Flavour
    nested: bool
    """Whether bwrap can forbid further user namespaces here."""
    layout: Layout
    name: WallName = "bubblewrap"

    @asynccontextmanager
    async def open(self, spec: BoxSpec) -> AsyncGenerator[BubblewrapConnection]:
        own_uid = self.flavour == "own_uid"
        with staged(spec.inputs) as inputs:
            async with accounting(spec.limits, own_uid=own_uid) as counting:
                uid = FIRST_UID + secrets.randbelow(UIDS)
                place = Place(staged_supervisor(), inputs, uid, counting.mounts())
                connection = await self._start(place, counting)
                try:
                    yield connection
                finally:
                    # Shielded: a cancelled runner still ends its box before it goes.
                    await asyncio.shield(connection.end())

    async def _start(self, place: Place, counting: Accounting) -> BubblewrapConnection:
        # bwrap says which process it made and holds it until its limits are set.
        info_read, info_write = os.pipe()
        go_read, go_write = os.pipe()
        try:
            with ExitStack() as fds:
                command, passed = self.command(fds, place, counting.limits)
                process = await asyncio.create_subprocess_exec(
                    *command,
                    *("--info-fd", str(info_write), "--block-fd", str(go_read), "--"),
                    *program(self.flavour, place.uid),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    limit=CHUNK_BYTES,
                    env={},
                    pass_fds=(*passed, info_write, go_read),
                    start_new_session=True,  # Ctrl-C is for the runner, which ends its boxes
                )
        except OSError as error:
            os.close(go_write)
            os.close(info_read)
            raise BoxLost(f"{self.bwrap} cannot be run: {error.strerror}") from error
        finally:
            os.close(info_write)
            os.close(go_read)
        connection = BubblewrapConnection(process, counting, self.enforced(counting))
        try:
            await connection.release(info_read, go_write)
        except BaseException:
            # Before the pipe closes: bwrap would take its end for leave to go on.
            await asyncio.shield(connection.end())
            raise
        finally:
            os.close(go_write)
            os.close(info_read)
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
            **counting.enforced(),
            "disk": "yes",
            "user": user,
            "capabilities": "yes",
            "seccomp": "yes" if known else f"none: no table of system calls for {machine}",
            "host_files": "yes",
            "cgroup": f"v{counting.group.version}" if counting.group else "none",
        }


class BubblewrapConnection:
    """The pipes of one box."""

    data_dir = "/mnt/data"
    work_dir = "/work"

    def __init__(
        self, process: asyncio.subprocess.Process, counting: Accounting, enforced: dict[str, str]
    ) -> None:
        assert process.stdin is not None, "all three streams are pipes"
        assert process.stdout is not None, "all three streams are pipes"
        self._process = process
        self._stream = BoxStream(process.stdout, process.stdin)
        self._counting = counting
        self._enforced = enforced
        self._first: int | None = None
        self._ended = False
        self._tasks = [asyncio.create_task(self._drain_errors())]

    @property
    def diagnosis(self) -> str:
        """The last that the supervisor, or bwrap before it, wrote to standard error."""
        return self._stream.errors.text

    async def release(self, info: int, go: int) -> None:
        """Sets the limits of the waiting first process and lets it start."""
        pid = await asyncio.to_thread(_first_process, info)
        if pid is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._tasks[0], 1.0)
            raise BoxLost(f"bubblewrap could not make a box: {self.diagnosis or 'no reason given'}")
        try:
            self._first = os.pidfd_open(pid)
            self._counting.apply(pid)
        except OSError as error:
            raise BoxLost(f"a box's limits could not be set: {error}") from error
        os.write(go, b"1")
        if self._counting.watchdog is not None:
            self._tasks.append(asyncio.create_task(self._counting.watchdog.watch()))

    async def read(self) -> bytes:
        return await self._stream.read()

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)

    async def kill(self) -> None:
        await asyncio.shield(self.end())

    async def why_lost(self) -> str | None:
        if self._ended:
            return None
        try:
            code = await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            return None  # the box closed its stream and lives on
        if code < 0:
            return None  # bwrap itself was killed from outside
        if code == 128 + signal.SIGKILL and self._counting.oom_kills():
            return "out_of_memory"
        return f"signal:{code - 128}" if code > 128 else f"exit:{code}"

    def enforced(self) -> dict[str, str]:
        return dict(self._enforced)

    async def end(self) -> None:
        """Kills every process of the box. Idempotent."""
        if self._ended:
            return
        self._ended = True
        self._stream.close()
        with contextlib.suppress(ProcessLookupError):
            if self._first is not None:
                # The first process of a process namespace takes all others with it.
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            else:
                self._process.kill()
        if self._first is not None:
            os.close(self._first)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), END_SECONDS)

    async def _drain_errors(self) -> None:
        assert self._process.stderr is not None, "all three streams are pipes"
        while data := await self._process.stderr.read(CHUNK_BYTES):
            self._stream.errors.add(data)


def _first_process(info: int) -> int | None:
    """The host's pid of the box's first process, as bwrap reports it; None when bwrap failed."""
    report = b""
    poll = select.poll()
    poll.register(info, select.POLLIN)
    deadline = time.monotonic() + START_SECONDS
    while b"}" not in report:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return None
        data = os.read(info, 4096)
        if not data:
            return None
        report += data
    return int(json.loads(report)["child-pid"])
