"""Ctrl-C, SIGTERM and the end of the terminal: one orderly end, whatever was going on.

The first signal ends what is under way: a coroutine is cancelled, plain code gets the usual
`KeyboardInterrupt`. Those after it change nothing, for boxes take a moment to close and an
impatient finger must not cut that short; only one that comes `PATIENCE_SECONDS` after the first
ends the process at once, and leaves its boxes to the guard's child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

Value = TypeVar("Value")

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
PATIENCE_SECONDS = 3.0
INTERRUPTED = 130
"""The exit code that shells give to what Ctrl-C has ended."""
_SHOW_CURSOR = b"\x1b[?25h"


class Interrupted(Exception):
    """A signal ended the work, and all of its blocks have been left."""


class Ending:
    """The handler of the signals. Use `handled()`."""

    def __init__(self) -> None:
        self.asked: float | None = None
        """When the first signal came (monotonic); None before."""
        self.acts: list[Callable[[], object]] = []
        """The last one is what the first signal does."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.asked is None:
            self.asked = now
            act = self.acts[-1] if self.acts else _raise
            act()
        elif now - self.asked > PATIENCE_SECONDS:
            _leave_now()


def _raise() -> None:
    raise KeyboardInterrupt


def _leave_now() -> None:
    with contextlib.suppress(OSError):
        cursor = _SHOW_CURSOR if os.isatty(2) else b""
        os.write(2, cursor + b"pot: interrupted; what is left of its boxes is being removed\n")
    os._exit(INTERRUPTED)


@contextmanager
def handled() -> Generator[Ending]:
    """The signals go to one `Ending` in the block: the one that has them already, or a new one.

    Outside the main thread nothing can be handled, and nothing is: whoever runs the thread
    cancels its work.
    """
    before = signal.getsignal(signal.SIGINT)
    if isinstance(before, Ending):
        yield before
        return
    ending = Ending()
    replaced: dict[signal.Signals, Any] = {}
    try:
        for number in SIGNALS:
            # `nohup` had it ignored for a reason.
            if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
                replaced[number] = signal.signal(number, ending)
    except ValueError:
        pass  # not the main thread
    try:
        yield ending
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


async def until_signal(work: Coroutine[Any, Any, Value]) -> Value:
    """The value of `work`; it is over in any case when this returns or raises.

    Raises:
        Interrupted: a signal has cancelled it.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    came: list[bool] = []

    def cancel() -> None:
        came.append(True)
        # From a signal handler: this also wakes the loop up.
        loop.call_soon_threadsafe(task.cancel)

    with handled() as ending:
        ending.acts.append(cancel)
        if ending.asked is not None:
            cancel()
        try:
            await asyncio.wait({task})
        finally:
            ending.acts.remove(cancel)
            if not task.done():  # it is us who are cancelled
                task.cancel()
                await asyncio.wait({task})
    if task.cancelled() and came:
        raise Interrupted
    return task.result()


def run_async(work: Coroutine[Any, Any, Value]) -> Value:
    """`asyncio.run` for commands.

    Raises:
        Interrupted: a signal has ended it. Threads of its set-up may still be busy with what nobody
            wants any more; they are not waited for.
    """
    with handled() as ending, _noted(ending):
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(until_signal(work))
        finally:
            loop.run_until_complete(_cancel_rest())
            loop.run_until_complete(loop.shutdown_asyncgens())
            if ending.asked is None:
                loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()


@contextmanager
def _noted(ending: Ending) -> Generator[None]:
    """In the block a signal raises nothing by itself; `until_signal` looks whether one came."""

    def note() -> None:
        """`asked` is set: that is all."""

    ending.acts.append(note)
    try:
        yield
    finally:
        ending.acts.remove(note)


async def _cancel_rest() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
