"""Many samples at once, few at a time; and how that is ended early by a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Job = TypeVar("Job")


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


def _first(group: BaseExceptionGroup[StopRun]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
