"""The supervisor's view of one kernel: its process, its side channel, its Jupyter sockets.

Everything read here comes from a process that runs the model's code: sizes are bounded, shapes
checked, and a broken message is dropped.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import contextlib
import os
import signal
import socket
import uuid
from collections.abc import Callable
from typing import Any

import zmq
from jupyter_client.session import Session

from .reactor import Reactor

MAX_MESSAGE = 96 * 1024 * 1024
_BATCH = 64
"""Messages handled before others get a turn."""
WELCOME_SECONDS = 0.25
"""After so long without a welcome, the kernel is asked again."""

OnMessage = Callable[[str, dict[str, Any]], None]


class Handle:
    """A kernel that is starting, ready, or gone."""

    def __init__(self, reactor: Reactor, context: zmq.Context[Any], address: str) -> None:
        self._reactor = reactor
        self._context = context
        self.address = address
        self.key = uuid.uuid4().hex
        self.pid = 0
        self.ready = False
        self.preloaded = False
        self.silent = 0
        """Cells in a row to which it gave no reply."""
        self.used = False
        """Whether a cell has run in it, so that its variables would be missed."""
        self._asked = self._begun = 0
        """Cells that it was given, and that it has begun."""
        self._session = Session(key=self.key.encode())
        self._sockets: list[zmq.Socket[Any]] = []
        self.channel, self.far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.setblocking(False)
        self._reactor.watch(self.channel.fileno(), self._on_channel)
        self.on_ready: Callable[[], None] = lambda: None
        self.on_broken: Callable[[], None] = lambda: None
        self.on_drain: Callable[[str], None] = lambda _: None
        self.on_message: OnMessage = lambda _, __: None

    def execute(self, code: str, pipes: tuple[int, int]) -> str:
        """Hands the kernel its pipes and the code; returns the request's id."""
        self.used = True
        self._asked += 1
        socket.send_fds(self.channel, [b"C"], pipes)
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        message = self._session.msg("execute_request", content=content)
        self._session.send(self._sockets[0], message)
        return message["header"]["msg_id"]

    @property
    def died_before_its_cell(self) -> bool:
        """Whether it ended without having begun the last cell, after others."""
        return 0 < self._begun < self._asked

    def interrupt(self) -> None:
        """Like Ctrl-C at a terminal: the kernel and what shares its process group."""
        self._signal_group(signal.SIGINT)

    def kill(self) -> None:
        """The whole group in one call: a storm of forks leaves no time for a second."""
        self._signal_group(signal.SIGKILL)
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Forgets the sockets; the process is the caller's business."""
        if self.channel.fileno() >= 0:
            self._reactor.unwatch(self.channel.fileno())
            self.channel.close()
        for each in self._sockets:
            self._reactor.unwatch(each)
            each.close(linger=0)
        self._sockets.clear()
        for number in range(1, 6):
            with contextlib.suppress(OSError):
                os.unlink(f"{self.address}-{number}")  # noqa: PTH108
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(self.address))  # noqa: PTH106, PTH120

    def _signal_group(self, number: signal.Signals) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _on_channel(self) -> None:
        try:
            data = self.channel.recv(512)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        kind = data[:1]
        if kind == b"p" and data[1:].isdigit():
            self.pid = self.pid or int(data[1:])
        elif kind == b"r" and not self._sockets:
            self._connect()
        elif kind == b"b":
            self._begun = self._asked
        elif kind == b"s" and len(data) >= 5:
            self.on_drain(data[5:].decode("ascii", "replace"))
            with contextlib.suppress(OSError):
                self.channel.send(b"k" + data[1:5])
        elif not data:
            self._reactor.unwatch(self.channel.fileno())
            self.on_broken()

    def _connect(self) -> None:
        shell = self._context.socket(zmq.DEALER)
        iopub = self._context.socket(zmq.SUB)
        for number, each in ((1, shell), (2, iopub)):
            each.linger = 0
            each.rcvhwm = 0
            each.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE)
            each.connect(f"ipc://{self.address}-{number}")
            self._sockets.append(each)
        self._reactor.watch(shell, lambda: self._receive(shell, "shell"))
        self._reactor.watch(iopub, lambda: self._receive(iopub, "iopub"))
        self._subscribe(iopub)

    def _subscribe(self, iopub: zmq.Socket[Any]) -> None:
        """Until the kernel welcomes us, which says that it is ready.

        Its thread waits for the edge of a descriptor, which a message that it sends in that moment
        takes away: then it sleeps beside the subscription that it has got.
        """
        if self.ready or iopub.closed:
            return
        iopub.unsubscribe(b"")
        iopub.subscribe(b"")
        self._reactor.later(WELCOME_SECONDS, lambda: self._subscribe(iopub))

    def _receive(self, source: zmq.Socket[Any], name: str) -> None:
        for _ in range(_BATCH):
            if source.closed:
                return
            try:
                frames = source.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._dispatch(name, frames)

    def _dispatch(self, name: str, frames: list[bytes]) -> None:
        try:
            _, rest = self._session.feed_identities(frames)
            message: dict[str, Any] = self._session.deserialize(rest)
            kind, content = message["header"]["msg_type"], message["content"]
        except Exception:  # noqa: BLE001 - signed by the model's code, so anything may come of it
            return  # not signed, not JSON, not a message: nothing of a well-behaved kernel
        if kind == "iopub_welcome" and name == "iopub":
            if not self.ready:
                self.ready = True
                self.on_ready()
        elif isinstance(content, dict):
            self.on_message(name, message)
