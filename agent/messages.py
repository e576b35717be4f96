"""The conversation: messages of text and images, a model's reply, and the actions read from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture as sent: encoded bytes, with the size of the file they came from."""

    data: bytes = field(repr=False)
    mime: Literal["image/png", "image/jpeg"]
    width: int
    """Pixels, as sent."""
    height: int
    name: str
    """The file in the box that it shows, or `output_<turn>_<n>.png` for one that came back."""
    origin: Literal["prompt", "box"]
    original_width: int
    original_height: int

    @property
    def size(self) -> int:
        """Encoded bytes."""
        return len(self.data)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


Part = Text | Image


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: str
    """As the model wrote it: JSON text, perhaps broken."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    parts: tuple[Part, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    """Role `assistant` only."""
    tool_call_id: str | None = None
    """Role `tool` only."""

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int
    """With reasoning."""
    estimated: bool = False
    """True when the server sent no usage and the figures are ours."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, before anything is read from it."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage(0, 0, estimated=True)
    seconds: float = 0.0
    """Model thinking: the successful request alone, without queueing and retry sleeps."""
    cached: bool = False
    """True when the reply came from the run's own cache and was not billed again."""


@dataclass(frozen=True, slots=True)
class Run:
    """An action: run this code."""

    code: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An action: this is the answer span, without its tags."""

    text: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """An action that could not be read; the hint is what the model is told."""

    hint: str
    call_id: str | None = None


Action = Run | Answer | Malformed


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model. `sample_id`, `repeat` and `turn` never leave the host: they key the
    reply cache."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    sample_id: str = ""
    repeat: int = 0
    turn: int = 0


class Model(Protocol):
    """Anything that answers a request. Implementations: `agent.models`."""

    name: str

    async def reply(self, request: Request) -> Reply:
        """One reply.

        Raises:
            agent.models.errors.ModelError: no reply could be had; retries are over.
        """
        ...


class Dialect(Protocol):
    """How code and answers are written in a reply, and how results go back."""

    name: Literal["tools", "fenced", "tags"]
    tools: tuple[Mapping[str, Any], ...]
    """For the request's `tools`; empty where code is written as text."""
    stop: tuple[str, ...]
    instructions: str
    """The paragraph of the system prompt that tells the model how to run code and how to answer."""

    def read(self, reply: Reply) -> tuple[Action, ...]:
        """Every action of a reply in order: any number of `Run`, then at most one `Answer`;
        `Malformed` where neither could be read or a tool call is unusable. Pure; never raises."""
        ...

    def assistant(self, reply: Reply) -> Message:
        """The reply as it goes back into the history."""
        ...

    def observation(
        self, results: tuple[tuple[Action, tuple[Part, ...]], ...]
    ) -> tuple[Message, ...]:
        """The messages that answer a turn: what each action gave, in order. In `tools` each call id
        is answered; pictures ride in a user message where role `tool` cannot carry them."""
        ...
