"""Ctrl-C, SIGTERM and the end of the terminal: one orderly end, whatever was going on.

The first signal ends what is under way: a coroutine is cancelled, plain code gets an exception.
Those after it change nothing, for boxes take a moment to close and an impatient finger must not cut
that short; only one that comes `PATIENCE_SECONDS` after the first ends the process at once, and
leaves its boxes to the guard's child.

Commands enter `handled` first of all, before anything large is imported (nor does this module):
until then Ctrl-C is a traceback.
"""

from __future__ import annotations

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
_SHOW_CURSOR = "\x1b[?25h"


class Interrupted(BaseException):
    """A signal ended the work. Like `KeyboardInterrupt` no `Exception`, so that nothing on the way
    takes it for a fault; unlike it, no library on the way makes something else of it."""


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
            leave_at_once("; what is left of its boxes is being removed")

    @contextmanager
    def acting(self, act: Callable[[], object]) -> Generator[None]:
        """The first signal calls `act` in the block."""
        self.acts.append(act)
        try:
            yield
        finally:
            self.acts.remove(act)


def _raise() -> None:
    raise Interrupted


def leave_at_once(more: str = "") -> None:
    """Ends the process without leaving any block: only where there is nothing to put in order."""
    with contextlib.suppress(OSError):
        cursor = _SHOW_CURSOR if os.isatty(2) else ""
        os.write(2, f"{cursor}pot: interrupted{more}\n".encode())
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
    import asyncio

    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    came: list[bool] = []

    def cancel() -> None:
        came.append(True)
        # From a signal handler: this also wakes the loop up.
        loop.call_soon_threadsafe(task.cancel)

    with handled() as ending, ending.acting(cancel):
        if ending.asked is not None:
            cancel()
        try:
            await asyncio.wait({task})
        finally:
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
    import asyncio

    with handled() as ending, ending.acting(_note):
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(until_signal(work))
        finally:
            loop.run_until_complete(_cancel_rest())
            loop.run_until_complete(loop.shutdown_asyncgens())
            if ending.asked is None:
                loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()


def _note() -> None:
    """A signal has been noted as `asked`; `until_signal` looks whether one came."""


async def _cancel_rest() -> None:
    import asyncio

    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
