"""Which cell the running code belongs to. Tasks and threads belong to the cell that started them,
and so do theirs: what they print when another cell runs goes nowhere."""
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import _thread
import contextvars
import os
import posix
import threading
from collections.abc import Callable
from typing import Any

CELL: contextvars.ContextVar[int] = contextvars.ContextVar("potrunner_cell")
_STREAMS = (1, 2)


def _started_by(cell: int, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    CELL.set(cell)
    function(*args, **kwargs)


def _threads() -> None:
    """A new thread's context is empty: it is told whose it is."""
    start, bootstrap, raw = (
        threading.Thread.start,
        threading.Thread._bootstrap_inner,  # type: ignore[attr-defined]
        _thread.start_new_thread,
    )

    def start_thread(self: Any) -> None:
        self._potrunner_cell = CELL.get(None)
        start(self)

    def bootstrap_thread(self: Any) -> None:
        cell = getattr(self, "_potrunner_cell", None)
        if cell is not None:
            CELL.set(cell)
        bootstrap(self)

    def start_new_thread(function: Any, args: Any, *more: Any) -> int:
        cell = CELL.get(None)
        if cell is None or not callable(function) or not isinstance(args, tuple):
            return raw(function, args, *more)
        everything: Any = (cell, function, args, *more) if more else (cell, function, args, {})
        return raw(_started_by, everything)

    threading.Thread.start = start_thread
    threading.Thread._bootstrap_inner = bootstrap_thread  # type: ignore[attr-defined]
    _thread.start_new_thread = _thread.start_new = start_new_thread  # type: ignore[assignment]


def _writes(muted: Callable[[], bool]) -> None:
    """Raw writes to the streams by a thread of an earlier cell."""
    write, writev = os.write, os.writev

    def write_unless_muted(fd: int, data: Any, /) -> int:
        if fd in _STREAMS and muted():
            return memoryview(data).nbytes
        return write(fd, data)

    def writev_unless_muted(fd: int, buffers: Any, /) -> int:
        if fd in _STREAMS and muted():
            return sum(memoryview(data).nbytes for data in buffers)
        return writev(fd, buffers)

    for module in (os, posix):
        module.write, module.writev = write_unless_muted, writev_unless_muted  # type: ignore[assignment]


def install(muted: Callable[[], bool]) -> None:
    """`muted` says whether the caller belongs to an earlier cell."""
    _threads()
    _writes(muted)


def patch_pools(module: Any) -> None:
    """A pool's thread works for the cell that gave it the work, whoever started it."""
    submit = module.ThreadPoolExecutor.submit

    def submit_in_context(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return submit(self, contextvars.copy_context().run, fn, *args, **kwargs)

    module.ThreadPoolExecutor.submit = submit_in_context
