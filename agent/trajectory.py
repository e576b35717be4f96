"""One sample's course through the loop, and the record that is written of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent.messages import Action, Message, Reply
from benchmarks.sample import Score
from sandbox.outputs import Execution

Stop = Literal[
    "answered",
    "max_turns",
    "token_limit",
    "time_limit",
    "context_full",
    "refused",
    "malformed",
    "cut_in_reasoning",
    "box_exhausted",
]
FailureKind = Literal["model_api", "sandbox_host", "input", "scorer", "bug"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply, what was read from it, what its code gave and what was sent back."""

    reply: Reply
    actions: tuple[Action, ...]
    executions: tuple[Execution, ...]
    """One for each `Run` that was run; empty on the last turn."""
    sent: tuple[Message, ...]
    """The assistant message and the observation messages, as they stand in the history."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    prompt: tuple[Message, ...]
    """System and user message, as sent."""
    turns: tuple[Turn, ...]
    stop: Stop
    answer: str | None
    """The span handed to the scorer; from the latest reply that has one."""

    @property
    def completion_tokens(self) -> int:
        return sum(turn.reply.usage.completion_tokens for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Failure:
    """A fault that is not the model's: the sample has no score."""

    kind: FailureKind
    message: str
    """One line."""


@dataclass(frozen=True, slots=True)
class Result:
    """The record of one sample: `samples/<safe id>.<repeat>.json`."""

    id: str
    repeat: int
    task: str
    group: str
    difficulty: str
    target: str
    trajectory: Trajectory | None
    """None when the sample failed before its first reply."""
    score: Score | None
    failure: Failure | None
    seconds: float
    """Model thinking and cells; what the time limit counts."""
    seed: int = 0
    """Of the sample's boxes."""
    choices: tuple[str, ...] = ()
    """With `meta` and `target` what scoring needs besides the transcript."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
