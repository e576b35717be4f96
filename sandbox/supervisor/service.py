"""Serves the host: greets, keeps one kernel ready, runs one cell at a time, names deaths."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import zmq

from . import greeting, wire
from .aftermath import lost, taken_by_host
from .cell import Cell
from .counters import Counters, has_room
from .counters import read as read_counters
from .files import WorkDir
from .greeting import Hello, Refused
from .handle import Handle
from .linux import kill_below
from .nursery import Nursery
from .output import full_text_directory
from .reactor import Reactor, Timer
from .spec import EXIT_HOST_MEMORY, EXIT_NEVER_READY, EXIT_NO_KERNEL, KernelSpec

HELLO_SECONDS = 10.0
BOOT_SECONDS = 30.0
MAX_BOOTS = 3
DYING_SECONDS = 0.3
"""A kernel closes what it has open a moment before it is dead."""
EXIT_NO_HELLO = 3
EXIT_LIFETIME = 4
EXIT_PROTOCOL = 6


def _noticed(_: int, __: FrameType | None) -> None:
    """Only so that the wake-up descriptor is written."""


class Service:
    """The whole state of a box."""

    def __init__(
        self, incoming: int, outgoing: int, state: Path, light: socket.socket, light_pid: int
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._state = state
        self._reactor = Reactor()
        self._context: zmq.Context[Any] = zmq.Context()
        self._nursery = Nursery(self._reactor, light, light_pid)
        self._nursery.on_lost = self._kernel_lost
        self._decoder = wire.Decoder()
        self._hello: Hello | None = None
        self._hello_timer: Timer | None = None
        self._work = WorkDir(".")
        self._kernel: Handle | None = None
        self._spare: Handle | None = None
        self._ever_ready = False
        self._failed_boots = 0
        self._cell: Cell | None = None
        self._code = ""
        self._waiting: tuple[int, str] | None = None
        """A cell whose kernel is not ready yet."""
        self._lost: str | None = None
        self._preload_asked = False
        self._counters = Counters(0, 0)

    def run(self) -> NoReturn:
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, _noticed)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._reactor.watch(reading, lambda: self._reap(reading))
        self._reactor.watch(self._incoming, self._receive)
        self._hello_timer = self._reactor.later(HELLO_SECONDS, lambda: self._leave(EXIT_NO_HELLO))
        while True:
            self._reactor.turn()

    # --- the host ------------------------------------------------------------------------------

    def _receive(self) -> None:
        data = os.read(self._incoming, 1 << 20)
        if not data:
            self._leave(0)
        try:
            for frame in self._decoder.feed(data):
                self._handle(frame)
        except wire.FrameError:
            self._leave(EXIT_PROTOCOL)

    def _handle(self, frame: wire.Frame) -> None:
        header = frame.header
        if self._hello is None:
            self._greet(header)
        elif frame.type == "run":
            self._run(wire.number(frame), wire.only_part(frame).decode("utf-8", "replace"))
        elif frame.type == "preload":
            self._preload()
        elif frame.type in ("interrupt", "kill"):
            self._stop(wire.number(frame), frame.type)

    def _greet(self, header: Mapping[str, Any]) -> None:
        assert self._hello_timer is not None
        self._hello_timer.cancel()
        try:
            hello = greeting.parse(header)
        except Refused as refusal:
            self._send({"type": "refused", "reason": str(refusal)}, [])
            self._leave(EXIT_PROTOCOL)
        self._hello = hello
        self._reactor.later(hello.lifetime_seconds, lambda: self._leave(EXIT_LIFETIME))
        self._work = WorkDir(hello.work_dir)
        self._work.changes()
        self._kernel = self._boot()
        self._send(greeting.ready(), [])

    def _send(self, header: dict[str, Any], parts: list[bytes]) -> None:
        view = memoryview(wire.encode(header, parts))
        try:
            while view:
                view = view[os.write(self._outgoing, view) :]
        except OSError:
            self._leave(0)

    def _leave(self, code: int) -> NoReturn:
        """Ends every process of the box, then this one."""
        kill_below(frozenset())
        os._exit(code)

    # --- cells ---------------------------------------------------------------------------------

    def _run(self, number: int, code: str) -> None:
        if self._cell is not None or self._waiting is not None:
            self._leave(EXIT_PROTOCOL)
        self._nursery.stop_preload()
        self._waiting = (number, code)
        self._start_waiting()

    def _start_waiting(self) -> None:
        if self._waiting is None or self._spare is not None:
            return
        kernel = self._kernel
        if kernel is None or not kernel.ready or self._hello is None:
            return
        number, self._code = self._waiting
        self._waiting = None
        self._cell = Cell(
            number,
            self._reactor,
            kernel,
            self._hello.limits,
            self._work,
            full_text_directory(self._state),
            self._send,
            self._spared,
            self._cell_ended,
        )
        self._send({"type": "began", "id": number}, [])
        lost, self._lost = self._lost, None
        self._cell.start(self._code, lost)

    def _cell_ended(self) -> None:
        self._cell = None

    def _stop(self, number: int, how: str) -> None:
        if self._cell is not None and self._cell.number == number:
            self._cell.interrupt() if how == "interrupt" else self._cell.kill()

    def _spared(self) -> frozenset[int]:
        kernels = {handle.pid for handle in (self._kernel, self._spare) if handle is not None}
        return self._nursery.pids | kernels

    # --- kernels -------------------------------------------------------------------------------

    def _boot(self) -> Handle:
        assert self._hello is not None
        # A name that nobody can have guessed and blocked, in the place of any state folder.
        folder = tempfile.mkdtemp(prefix=".k")
        if not self._state.is_dir():  # a cell put something else there
            self._state = Path(tempfile.mkdtemp(prefix=".box-"))
        handle = Handle(self._reactor, self._context, f"{folder}/k")
        spec = KernelSpec(
            work_dir=self._hello.work_dir,
            state_dir=str(self._state),
            address=handle.address,
            key=handle.key,
            seed=self._hello.seed,
            max_pixels=self._hello.limits.pixels,
            threads=self._hello.threads,
        )
        handle.on_ready = lambda: self._kernel_ready(handle)
        handle.on_broken = lambda: self._kernel_broken(handle)
        with handle.far_end:
            handle.preloaded = self._nursery.fork(handle.far_end.fileno(), asdict(spec))
        self._counters = read_counters()
        self._reactor.later(BOOT_SECONDS, lambda: handle.ready or self._kernel_broken(handle))
        return handle

    def _kernel_ready(self, handle: Handle) -> None:
        self._failed_boots = 0
        self._ever_ready = True
        if handle is self._spare:
            old, self._kernel, self._spare = self._kernel, handle, None
            if old is not None:
                old.kill()
                old.close()
            self._send({"type": "preloaded"}, [])
        elif self._preload_asked:
            self._preload()
        self._start_waiting()

    def _kernel_broken(self, handle: Handle) -> None:
        """Its side channel is closed or it never became ready: of no use, alive or not."""
        if handle.pid:
            self._reactor.later(DYING_SECONDS, lambda: self._end_broken(handle))
        elif handle in (self._kernel, self._spare):
            self._replace(handle)

    def _end_broken(self, handle: Handle) -> None:
        """It was not dying; now it does."""
        if handle is self._kernel and self._cell is not None:
            self._cell.output.note("The kernel had cut itself off and was ended.")
        if handle in (self._kernel, self._spare):
            handle.kill()

    def _kernel_lost(self) -> None:
        """Its zygote was ended before it had forked it: none of the kernel's doing."""
        for handle in (self._kernel, self._spare):
            if handle is not None and not handle.pid:
                self._replace(handle, tried=False)

    def _replace(self, handle: Handle, *, tried: bool = True) -> None:
        handle.close()
        if self._ever_ready and not has_room():
            self._leave(EXIT_NO_KERNEL)
        if tried and not handle.ready:
            self._failed_boots += 1
            if self._failed_boots >= MAX_BOOTS:
                self._leave(EXIT_NO_KERNEL if self._ever_ready else EXIT_NEVER_READY)
        if handle is self._spare:
            self._spare = None
            self._send({"type": "preloaded"}, [])
            self._start_waiting()
        else:
            self._kernel = self._boot()

    def _reap(self, wakeup: int) -> None:
        os.read(wakeup, 4096)
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for handle in (self._kernel, self._spare):
                if handle is not None and handle.pid == pid:
                    self._died(handle, status, usage)

    def _died(self, handle: Handle, status: int, usage: Any) -> None:
        cell = self._cell if handle is self._kernel else None
        if taken_by_host(status, self._counters, read_counters()):
            self._leave(EXIT_HOST_MEMORY)
        if cell is not None and not handle.died_before_its_cell:
            cell.died(status, usage)
        elif handle is self._kernel and handle.used:
            if cell is not None:  # of what an earlier one did: it runs in the next kernel
                cell.withdraw()
                self._cell, self._waiting = None, (cell.number, self._code)
            self._lost = lost(status, self._counters, read_counters())
        self._replace(handle)

    # --- the libraries -------------------------------------------------------------------------

    def _preload(self) -> None:
        """Not before the first kernel is ready: it must not wait for this. Not at all once a cell
        is here: its kernel imports what it needs, and the CPU time is saved."""
        kernel = self._kernel
        self._preload_asked = False
        if self._waiting is not None or self._nursery.full is not None:
            self._send({"type": "preloaded"}, [])
        elif kernel is None or not kernel.ready:
            self._preload_asked = True
        elif kernel.used:
            self._send({"type": "preloaded"}, [])
        else:
            self._nursery.preload(self._libraries_ready)

    def _libraries_ready(self, message: dict[str, Any]) -> None:
        """A kernel that has not been used yet makes room for one that has the libraries."""
        unused = self._kernel is not None and not self._kernel.used and self._waiting is None
        if message.get("ready") and unused and message.get("threads") == 1:
            self._spare = self._boot()
        else:
            self._send({"type": "preloaded"}, [])
