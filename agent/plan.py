"""What one run needs, ready to go; `agent.prepare` makes it from a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from agent.config import RunConfig
from agent.loop import Box, OpenBox
from agent.messages import Dialect, Model
from benchmarks.sample import Sample
from sandbox.spec import InputFile

OpenSeeded = Callable[[Sequence[InputFile], int], AbstractAsyncContextManager[Box]]
"""Opens a box with input files and a seed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run, ready to go."""

    config: RunConfig
    """Resolved: each `auto` is replaced by what it came to."""
    samples: Mapping[str, Sample]
    """By id, in the order of the data."""
    model: Model
    dialect: Dialect
    open_box: OpenSeeded
    pause: float = 1.0
    """Seconds before a sample gets a new box after the host lost its first; doubled each time."""

    def opener(self, sample_id: str, repeat: int) -> OpenBox:
        """Opens boxes for one sample, seeded by it."""
        seed = self.config.sample_seed(sample_id, repeat)
        return lambda files: self.open_box(files, seed)
