"""Models that need no server, by name: `scripted`, `replay:RUN`, `human`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from agent.config import RunConfig
from agent.errors import ConfigError
from agent.messages import Model
from agent.models.human import NAME as HUMAN
from agent.models.human import Human
from agent.models.replay import PREFIX as REPLAY
from agent.models.replay import Replayed, replayed
from agent.models.scripted import Scripted

SCRIPTED = Scripted.name
LOCAL = {
    SCRIPTED: "the reference programs, on items that `pot build` makes",
    f"{REPLAY}RUN": "what the model of that run directory said, again",
    HUMAN: "you, at the terminal",
}
"""Name → what it is. With --base-url `scripted` and `human` are names at that endpoint."""


def local_model(
    config: RunConfig, show: Callable[[str], None]
) -> AbstractAsyncContextManager[Model] | None:
    """The model, open inside the block; None when its name is one at an endpoint.

    Raises:
        RunDirError: no run where `replay:` says. ConfigError: an endpoint is named with it.
    """
    source = replayed(config.model)
    if source is not None:
        if config.base_url is not None:
            raise ConfigError(f"--base-url: {config.model} asks no server; leave it out")
        return nullcontext(Replayed(source))
    if config.base_url is not None:
        return None
    if config.model == HUMAN:
        return Human(show)
    return nullcontext(Scripted()) if config.model == SCRIPTED else None


def local_dialect(config: RunConfig) -> str | None:
    """What `--dialect auto` means for these models: as recorded, or as people write; else None.

    Raises:
        RunDirError: no run where `replay:` says. ConfigError: a dialect that people cannot write.
    """
    source = replayed(config.model)
    if source is not None:
        return Replayed(source).config().dialect
    if config.model != HUMAN or config.base_url is not None:
        return None
    if config.dialect == "tools":
        raise ConfigError("--dialect tools: human writes text; expected fenced or tags")
    return "fenced"
