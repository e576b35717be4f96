"""The question and its score: frozen values shared by every benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["correct", "wrong", "no_span", "unparsed", "unscored"]


@dataclass(frozen=True, slots=True)
class Picture:
    """One input picture, original bytes."""

    name: str
    """As the model knows it and as it lies in the box: `image_1.png`, `image_2.jpg`, …"""
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sample:
    """One question. `target` never enters the box or a request."""

    id: str
    """Unique in the benchmark, any text: `<task>/<split>/<n>` for CwI."""
    benchmark: str
    task: str
    prompt: str
    pictures: tuple[Picture, ...]
    target: str
    group: str = ""
    difficulty: str = ""
    choices: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Generation parameters and the typed gold, as the data carries them. Never sent."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The verdict of one scoring stage."""

    name: str
    verdict: Literal["pass", "score", "invalid"]
    value: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Score:
    """`value` is None only for `unscored` (a judge's verdict is missing)."""

    value: Literal[0, 1] | None
    outcome: Outcome
    answer: str | None
    """The parsed answer in canonical form; None when nothing could be read."""
    reason: str
    """One line: the rule, what was expected of it and by how much it was missed."""
    stages: tuple[Stage, ...] = ()
