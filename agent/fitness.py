"""Settings that are each right and cannot work together, told before anything starts."""

from __future__ import annotations

from collections.abc import Iterable

from agent.config import RunConfig
from agent.errors import ConfigError
from agent.models.scripted import Scripted
from benchmarks.cwi.tasks import recognise
from benchmarks.sample import Sample


def refuse_unfit(config: RunConfig, samples: Iterable[Sample]) -> None:
    """For the reference programs: they need the sandbox, and items that have such a program.

    Raises:
        ConfigError: some sample could never be solved.
    """
    if config.model != Scripted.name or config.base_url is not None:
        return
    if config.arm == "look":
        raise ConfigError(
            "--arm look: scripted runs programs in the sandbox, expected --arm code or blind"
        )
    if config.max_turns < 2:
        raise ConfigError(
            "--max-turns 1: scripted runs a program before it answers, expected 2 or more"
        )
    for sample in samples:
        if recognise(sample.prompt) is None:
            raise ConfigError(
                "--model scripted: expected items that `pot build cwi` makes, found "
                f"{sample.id!r} ({sample.task}); choose others with --tasks or --data, or another "
                "model"
            )
