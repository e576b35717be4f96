"""The kernel's end of a cell's output: fresh pipes as file descriptors 1 and 2, and their order.

Python, C libraries and child processes all write to the two pipes, which the supervisor drains.
Where order matters (before a picture; from stdout to stderr) the kernel asks the supervisor over a
side channel to drain first. Threads and tasks of an earlier cell are mute.

Side channel, one datagram each:
    to the kernel     `C` + two descriptors: a cell begins;  `k` + number: drained
    to the supervisor `p` + pid;  `r`: ready;  `b`: the cell has begun;
                      `s` + number + message id: drain, then expect it
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import threading
import time
from typing import Any

from .belonging import CELL
from .failures import attempt
from .linux import flush_c_streams

WAIT_SECONDS = 5.0
MAX_TURNS = 500
"""Changes between stdout and stderr that are kept in order in one cell; each costs 0.1 ms."""
PAUSE_SECONDS = 0.005
"""After so long without a word from Python, a child process may have written."""


class Buffer(io.BufferedWriter):
    """What `sys.stdout.buffer` is: bytes of an earlier cell's threads go nowhere."""

    capture: Any = None

    def seekable(self) -> bool:
        """Between cells it is /dev/null, which would do; the pipe would not."""
        return False

    def write(self, data: Any, /) -> int:
        if self.capture.muted():
            return memoryview(data).nbytes
        return super().write(data)


class Stream(io.TextIOWrapper):
    """`sys.stdout` or `sys.stderr`: an ordinary text stream that knows who may write now."""

    def __init__(self, capture: Capture, descriptor: int) -> None:
        buffer = Buffer(io.FileIO(descriptor, "w", closefd=False))
        buffer.capture = capture
        super().__init__(buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._capture = capture

    def write(self, text: str, /) -> int:
        if self._capture.muted():
            return len(text)
        self._capture.turn_to(self)
        return super().write(text)

    def is_sound(self) -> bool:
        """Whether it is as it was made: neither closed nor detached nor given another encoding."""
        try:
            how = (self.closed, self.encoding, self.errors, self.line_buffering)
        except ValueError:
            return False
        return how == (False, "utf-8", "backslashreplace", True)

    def isatty(self) -> bool:
        return False


class Capture:
    """One per kernel process. `begin` and `end` frame each cell."""

    def __init__(self, channel: socket.socket) -> None:
        channel.settimeout(WAIT_SECONDS)
        self._channel = channel
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._cell = 0
        self._last: Stream | None = None
        self._turns = 0
        self._number = 0
        self._pipes: list[int] = []
        self._spoken = 0.0
        self._streams = self._fresh()

    def say(self, message: bytes) -> None:
        self._channel.send(message)

    def begin(self) -> None:
        """Takes the pipes of the cell that starts now.

        Raises:
            OSError: the supervisor sent none.
        """
        with self._lock:
            while not self._pipes:
                self._receive()
            descriptors, self._pipes = self._pipes, []
            self._channel.send(b"b")
        for target, source in zip((1, 2), descriptors, strict=True):
            os.dup2(source, target)
            os.close(source)
        self._cell += 1
        CELL.set(self._cell)
        self._last = None
        self._turns = 0
        self._spoken = time.monotonic()
        self._restore()

    def end(self) -> None:
        """Everything written so far is in the pipes; what comes later goes nowhere."""
        self.flush()
        self._cell += 1  # between cells nobody speaks: the next request is the parent by then
        os.dup2(self._null, 1)
        os.dup2(self._null, 2)
        self._restore()  # the kernel flushes them next, and must not meet a closed one

    @property
    def is_copy(self) -> bool:
        """True in a child that the cell forked."""
        return os.getpid() != self._pid

    def muted(self) -> bool:
        """Whether the caller belongs to an earlier cell."""
        return CELL.get(self._cell) != self._cell

    def turn_to(self, stream: Stream) -> None:
        """Keeps what the two streams and child processes print in order."""
        now = time.monotonic()
        last, self._last = self._last, stream
        turned = last is not None and last is not stream and self._turns < MAX_TURNS
        if turned or now - self._spoken > PAUSE_SECONDS:
            self._turns += turned
            if last is not None:
                with contextlib.suppress(ValueError):  # closed by the cell
                    last.flush()
            self._drained(b"")
            now = time.monotonic()
        self._spoken = now

    def before_message(self, message: str) -> None:
        """What was printed so far stays before this message."""
        self.flush()
        self._last = None
        self._drained(message.encode("ascii", "replace"))

    def flush(self) -> None:
        for stream in self._streams:
            with contextlib.suppress(ValueError, OSError):
                stream.flush()
        for name in ("stdout", "stderr"):  # a cell may have put anything there
            attempt(lambda name=name: getattr(sys, name).flush())
        flush_c_streams()

    def _restore(self) -> None:
        """Whatever a cell did to the streams lasts until its end."""
        if not all(stream.is_sound() for stream in self._streams):
            self._streams = self._fresh()
        sys.stdout, sys.stderr = self._streams
        sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc]

    def _fresh(self) -> tuple[Stream, Stream]:
        return Stream(self, 1), Stream(self, 2)

    def _receive(self) -> bytes:
        """The next datagram. A thread of the last cell may be the one that gets the next pipes."""
        message, descriptors, _, _ = socket.recv_fds(self._channel, 64, 2)
        if message == b"C":
            if len(descriptors) != 2:
                raise OSError("no descriptors left for the pipes")
            self._pipes = descriptors
        elif not message:
            raise OSError("the supervisor has closed the channel")
        return message

    def _drained(self, message: bytes) -> None:
        if self.is_copy:
            return
        with self._lock:
            self._number += 1
            number = self._number.to_bytes(4, "big")
            try:
                self._channel.send(b"s" + number + message[:200])
                while self._receive() != b"k" + number:
                    pass
            except OSError:
                return  # the supervisor is gone or late: order may suffer, nothing else
