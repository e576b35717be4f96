"""Closing that no cancellation cuts short."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Value = TypeVar("Value")


async def to_the_end(work: Awaitable[Value]) -> Value:
    """Like awaiting `work`, but a cancellation, however often it comes, arrives when it is over.

    `work` has deadlines of its own. Where it fails after a cancellation, the cancellation is what
    is raised.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # seen, so that nobody is warned of it later
        raise cancelled
    return task.result()
