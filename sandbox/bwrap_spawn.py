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
import re
import select
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from sandbox.identity import this_process
from sandbox.reap_child import OWNER_MARK

START_SECONDS = 20.0
END_SECONDS = 10.0
LEARN_SECONDS = 2.0


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
    report: bytes = b""
    """What bwrap has said on `info` so far."""

    async def first_process(self) -> int | None:
        """The host's pid of the box's first process, which waits; None when bwrap failed."""
        try:
            async with asyncio.timeout(START_SECONDS):
                while b"}" not in self.report:
                    await _readable(self.info)
                    data = os.read(self.info, 4096)
                    if not data:
                        return None
                    self.report += data
            pid = int(json.loads(self.report)["child-pid"])
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
                # Never before its child is known: a child that bwrap had just forked would wait
                # for it for ever.
                self._learn_first()
                self.bwrap.kill()
                if self.first is not None:
                    signal.pidfd_send_signal(self.first, signal.SIGKILL)
        if self.wait() is None:
            self.bwrap.kill()
            self.bwrap.wait()

    def _learn_first(self) -> None:
        """Reads the child's pid if bwrap has not failed; blocks for a moment at most."""
        poll = select.poll()
        poll.register(self.info, select.POLLIN | select.POLLHUP)
        deadline = time.monotonic() + LEARN_SECONDS
        while b"}" not in self.report and poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            data = os.read(self.info, 4096)
            if not data:
                return
            self.report += data
        found = re.search(rb'"child-pid"\s*:\s*(\d+)', self.report)
        if found:
            with contextlib.suppress(ProcessLookupError):
                self.first = os.pidfd_open(int(found[1]))

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
            env={OWNER_MARK: str(this_process())},
            pass_fds=(*passed, info_write, go_read),
            umask=0o022,  # a box is the same whatever the runner's is
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
