"""Models: anything that answers a request. `open_model` gives one by name."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from agent.messages import Model
from agent.models.options import Patience, RequestOptions, find_endpoint

__all__ = ["LOCAL", "open_model"]

LOCAL = ("scripted",)
"""Names of models that need no server; every other name is the model of an endpoint."""


@asynccontextmanager
async def open_model(
    name: str,
    base_url: str | None = None,
    options: RequestOptions | None = None,
    *,
    patience: Patience | None = None,
    notify: Callable[[str], None] = lambda line: None,
) -> AsyncGenerator[Model]:
    """`scripted`, or model `name` of the endpoint at `base_url` or in the environment.

    `notify` is told in one line each which endpoint is used, of waits, and of adaptations.

    Raises:
        AccessRefused: an address or a key is missing or cannot be used.
    """
    # Both imports wait until one is wanted: the reference programs bring numpy, the SDK takes a
    # second, and most commands need neither.
    if name in LOCAL:
        from agent.models.scripted import Scripted

        yield Scripted()
        return
    endpoint = find_endpoint(base_url, os.environ)
    notify(f"{name} at {endpoint.shown}")
    from agent.models.openai_chat import OpenAIChat

    async with OpenAIChat(name, endpoint, options, patience, notify) as model:
        yield model
