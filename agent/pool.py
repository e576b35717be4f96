"""Many samples at once, few at a time; and how that is ended early by a signal or by a reason."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager
from typing import Any, TypeVar

Job = TypeVar("Job")
Value = TypeVar("Value")


class StopRun(Exception):
    """Raised in a job to end all of them; the text says why, in one line."""


async def work_off(
    jobs: Iterable[Job], work: Callable[[Job], Awaitable[None]], workers: int
) -> str | None:
    """Does every job, `workers` at a time, in order of starting; the reason when one stopped it.

    Jobs that are running when it is stopped or cancelled are cancelled and waited for.
    """
    waiting = iter(jobs)

    async def worker() -> None:
        for job in waiting:
            await work(job)

    reason: str | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())
    except* StopRun as stopped:
        reason = str(_first(stopped))
    return reason


async def until_signal(work: Coroutine[Any, Any, Value]) -> Value | None:
    """The value of `work`, or None when Ctrl-C or SIGTERM ended it; either way it is over then."""
    task = asyncio.ensure_future(work)
    try:
        with _on_signal(task.cancel):
            await asyncio.wait({task})
    finally:
        if not task.done():  # it is us who are cancelled
            task.cancel()
            await asyncio.wait({task})
    return None if task.cancelled() else task.result()


async def to_the_end(work: Coroutine[Any, Any, Value]) -> Value:
    """Like awaiting `work`, but a cancellation only arrives when it is over."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


@contextmanager
def _on_signal(act: Callable[[], object]) -> Generator[None]:
    """Calls `act` at Ctrl-C and SIGTERM in place of what they do; not outside the main thread."""
    loop = asyncio.get_running_loop()
    caught: list[signal.Signals] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, act)
        except (ValueError, RuntimeError, NotImplementedError):
            break  # another thread, or a loop without signals: whoever runs it cancels us
        caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


def _first(group: BaseExceptionGroup[StopRun]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
