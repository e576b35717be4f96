"""What a generator is: a pure function from a photograph, a random stream and a tier to a draft.

A draft carries the picture, the prompt and the typed gold; whether it becomes an item is decided
outside, by the task's shortcuts and its own test of well-posedness. Geometry everywhere: x right, y
down, the centre of the top-left pixel is (0, 0), angles counter-clockwise as seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T")
Pixels = NDArray[np.uint8]
"""Height × width × 3, RGB."""
Plane = NDArray[np.float64]
"""Height × width, or height × width × channels, in grey levels 0-255."""
Tier = Literal["easy", "medium", "hard", "expert"]
TIERS: tuple[Tier, ...] = ("easy", "medium", "hard", "expert")
SIDE = 480
"""The canvas of a photograph: 480 × 480."""


@dataclass(frozen=True, slots=True)
class Draft:
    picture: Pixels
    prompt: str
    """Self-contained; ends with the exact answer form, whose example is never the answer."""
    answer: str
    gold: tuple[int | float, ...]
    """The numbers of the answer, typed."""
    parameters: Mapping[str, Any]
    """Everything that was chosen, as JSON values."""
    ill_posed: str | None = None
    """Why the picture does not fix the answer; None where it does."""
    picture_2: Pixels | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One generator. The 31st is one such value and one entry in `benchmarks.cwi.tasks`."""

    name: str
    version: int
    """Raised whenever the same seed would give another item."""
    opening: str
    """The first sentence of every prompt of the task, and of no other task's."""
    draw: Callable[[Pixels, np.random.Generator, Tier], Draft]
    """A draft from a 480 × 480 photograph. Pure."""
    shortcuts: Callable[[Draft], Mapping[str, str]]
    """Answers one could give without doing the task, by name: constants, the untouched value, the
    thumbnail reader. An item that any of them gets right is drawn again."""


def example(candidates: tuple[str, ...], answer: str) -> str:
    """The first of the example answers that is not the answer itself."""
    return next(text for text in candidates if text != answer)


def by_tier(tier: Tier, values: tuple[_T, _T, _T, _T]) -> _T:
    """The value of this tier in a row of four."""
    return values[TIERS.index(tier)]
