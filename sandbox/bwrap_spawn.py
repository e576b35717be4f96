"""Starting bwrap, holding its first process until limits are set, and ending both.

`subprocess` and a socket pair, not asyncio's own subprocess: that one hangs when it is cancelled
between fork and the connection of its pipes. Start from the main thread: `--die-with-parent`
follows the thread, not the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field

START_SECONDS = 20.0
END_SECONDS = 10.0


@dataclass(slots=True)
class Spawned:
    """bwrap, our ends of its descriptors, and in time the box's first process."""

    bwrap: subprocess.Popen[bytes]
    stream: socket.socket
    """The other end is the box's standard input and output."""
    info: int
    go: int
    errors: int
    """Non-blocking; what bwrap and the box write to standard error."""
    first: int | None = field(default=None)
    """A descriptor of the box's first process: unlike a pid it cannot be reused."""

    async def first_process(self) -> int | None:
        """The host's pid of the box's first process, which waits; None when bwrap failed."""
        report = b""
        try:
            async with asyncio.timeout(START_SECONDS):
                while b"}" not in report:
                    await _readable(self.info)
                    data = os.read(self.info, 4096)
                    if not data:
                        return None
                    report += data
            pid = int(json.loads(report)["child-pid"])
            self.first = os.pidfd_open(pid)
        except (TimeoutError, ProcessLookupError):
            return None
        return pid

    def go_on(self) -> None:
        """Lets the first process start the supervisor."""
        os.write(self.go, b"1")

    def wait(self) -> int | None:
        """The box's exit code, 128 + N after signal N; None when it does not end in time."""
        try:
            return self.bwrap.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return None

    def kill_and_wait(self) -> None:
        """Ends every process of the box."""
        with contextlib.suppress(ProcessLookupError):
            if self.first is not None:
                # The first process of a process namespace takes all others with it.
                signal.pidfd_send_signal(self.first, signal.SIGKILL)
            else:
                self.bwrap.kill()
        if self.wait() is None:
            self.bwrap.kill()
            self.bwrap.wait()

    def close(self) -> None:
        """Closes the descriptors. After the kill: bwrap takes a closed `go` for leave to go on."""
        for fd in (self.info, self.go, self.errors, self.first):
            if fd is not None:
                os.close(fd)
        self.stream.close()


def spawn(command: list[str], program: list[str], passed: list[int]) -> Spawned:
    """Starts bwrap; its child waits at the door until `go_on`.

    Raises:
        OSError: bwrap cannot be run, or there are no descriptors left.
    """
    with ExitStack() as ours, ExitStack() as theirs:
        outside, inside = socket.socketpair()
        ours.enter_context(outside)
        theirs.enter_context(inside)
        info_read, info_write = _pipe(ours, theirs)
        errors_read, errors_write = _pipe(ours, theirs)
        go_read, go_write = _pipe(theirs, ours)
        os.set_blocking(errors_read, False)
        bwrap = subprocess.Popen(
            [*command, "--info-fd", str(info_write), "--block-fd", str(go_read), "--", *program],
            stdin=inside.fileno(),
            stdout=inside.fileno(),
            stderr=errors_write,
            env={},
            pass_fds=(*passed, info_write, go_read),
            start_new_session=True,  # Ctrl-C is for the runner, which then ends its boxes
        )
        ours.pop_all()
        return Spawned(bwrap, outside, info_read, go_write, errors_read)


def _pipe(readers: ExitStack, writers: ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    readers.callback(os.close, read)
    writers.callback(os.close, write)
    return read, write


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
