"""The supervisor's side of the zygotes: asks them for kernels, replaces one that was killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .reactor import Reactor, Timer

HERE = Path(__file__).resolve().parent
ANSWER_SECONDS = 5.0
"""A zygote that is ready says at once that it has taken a request; one that does not is stopped, or
whatever else a cell has done to it."""


class Zygote:
    """The control socket of one zygote."""

    def __init__(
        self,
        reactor: Reactor,
        control: socket.socket,
        on_end: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._reactor = reactor
        self._control = control
        self._on_end = on_end
        self._on_lost = on_lost
        self._asked = False
        self._patience: Timer | None = None
        self.pid = 0
        self.ready = False
        self.on_ready: Callable[[dict[str, Any]], None] = lambda _: None
        control.setblocking(False)
        reactor.watch(control.fileno(), self._on_readable)

    def ask(self, op: str, descriptor: int, spec: dict[str, Any] | None = None) -> bool:
        """Sends a request; False when the zygote is gone."""
        request = json.dumps({"op": op, "spec": spec}).encode()
        try:
            socket.send_fds(self._control, [request], [descriptor])
        except OSError:
            return False
        self._asked = True
        self._wait()
        return True

    def close(self) -> None:
        if self._control.fileno() >= 0:
            self._reactor.unwatch(self._control.fileno())
            self._control.close()

    def kill(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _on_readable(self) -> None:
        try:
            data = self._control.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end()
            return
        message = json.loads(data)
        self.pid = message.get("pid", self.pid)
        if message.get("took"):
            self._asked = False
        if message.get("ready"):
            self.ready = True
            self._wait()
            self.on_ready(message)

    def _wait(self) -> None:
        """For the answer to a request; one that still imports may take its time."""
        if self._asked and self.ready:
            if self._patience is not None:
                self._patience.cancel()
            self._patience = self._reactor.later(ANSWER_SECONDS, self._unanswered)

    def _unanswered(self) -> None:
        if self._asked and self._control.fileno() >= 0:
            self.kill()
            self._end()

    def _end(self) -> None:
        self.close()
        self._on_end()
        if self._asked:
            self._on_lost()


class Nursery:
    """At most one light and one full zygote."""

    def __init__(self, reactor: Reactor, light: socket.socket, light_pid: int) -> None:
        self._reactor = reactor
        self.on_lost: Callable[[], None] = lambda: None
        """A kernel that was asked for will not come."""
        self.light = self._zygote(light, self._respawn)
        self.light.pid = light_pid
        self.full: Zygote | None = None

    @property
    def pids(self) -> frozenset[int]:
        full = self.full.pid if self.full else 0
        return frozenset({self.light.pid, full} - {0})

    def fork(self, descriptor: int, spec: dict[str, Any]) -> bool:
        """Forks a kernel; True when it comes with the libraries loaded."""
        for pid in self.pids:  # the cell that ended may have stopped them
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if self.full is not None and self.full.ready and self.full.ask("kernel", descriptor, spec):
            return True
        if not self.light.ask("kernel", descriptor, spec):
            self._respawn()
            self.light.ask("kernel", descriptor, spec)
        return False

    def preload(self, on_ready: Callable[[dict[str, Any]], None]) -> None:
        """Starts the full zygote; `on_ready` gets what it says, or `{}` when it has died."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def ended() -> None:
            was_ready = self.full is not None and self.full.ready
            self.full = None
            if not was_ready:
                on_ready({})

        self.full = self._zygote(near, ended)
        self.full.on_ready = on_ready
        with far:
            self.light.ask("full", far.fileno())

    def stop_preload(self) -> None:
        """A cell is here already: its libraries are imported where they are needed."""
        if self.full is not None and not self.full.ready:
            self.full.kill()

    def _respawn(self) -> None:
        """Starts a light zygote anew. Not by a fork: the supervisor has threads by now."""
        self.light.close()
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            far.set_inheritable(True)
            command = [sys.executable, "-s", "-P", str(HERE), "--zygote", str(far.fileno())]
            pid = os.posix_spawn(sys.executable, command, os.environ)
        self.light = self._zygote(near, self._respawn)
        self.light.pid = pid

    def _zygote(self, control: socket.socket, on_end: Callable[[], None]) -> Zygote:
        return Zygote(self._reactor, control, on_end, lambda: self.on_lost())
