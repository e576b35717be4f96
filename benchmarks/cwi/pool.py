"""Worker processes that end with the process that started them, however that one ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")


@contextmanager
def results(
    work: Callable[[_In], _Out], inputs: Sequence[_In], processes: int
) -> Generator[Iterator[_Out]]:
    """The results in order, made by spawned processes: a forked one would inherit what the caller
    has open. What has not begun when the block is left never does."""
    pool = ProcessPoolExecutor(
        min(processes, len(inputs)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_end_with_parent,
    )
    try:
        # A terminal's Ctrl-C goes to the whole group. The workers inherit this mask, so that they
        # leave the interrupt, and what is said about it, to this process.
        with _held_back():
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                made = pool.map(work, inputs)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield made
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _held_back() -> Generator[None]:
    """Signals of the block are handled at its end: an exception out of a handler would leave a
    worker half started. A mask alone does not do it, other threads take the signal then."""
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if threading.current_thread() is not threading.main_thread():
        handlers = {}
    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)


def _end_with_parent() -> None:
    """A killed parent closes nothing that a waiting worker would notice: a thread watches it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
