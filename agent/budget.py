"""What a sample may still use: tokens, seconds, boxes; and what a request may carry in pictures.

Time is model thinking and cells. Queueing, the start of boxes and the sleep between retries are
nobody's doing and are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.config import RunConfig
from agent.messages import Image, Message, Part, Reply, Text
from sandbox.outputs import Execution

MAX_DEATHS = 3
"""Kernels or boxes that a sample may lose before it ends as `box_exhausted`."""


@dataclass(slots=True)
class Budget:
    """Counts up while a sample runs; the only mutable thing in the loop."""

    config: RunConfig
    tokens: int = 0
    seconds: float = 0.0
    deaths: int = 0

    def count_reply(self, reply: Reply) -> None:
        self.tokens += reply.usage.completion_tokens
        self.seconds += reply.seconds

    def count_cell(self, execution: Execution) -> None:
        self.seconds += execution.seconds
        self.deaths += execution.kernel == "restarted"

    @property
    def tokens_left(self) -> int:
        return max(0, self.config.token_limit - self.tokens)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.config.time_limit - self.seconds)

    @property
    def max_tokens(self) -> int | None:
        """For the next request: at most what is left; nothing where nobody set a limit."""
        if self.config.max_tokens is None:
            return None
        return max(1, min(self.config.max_tokens, self.tokens_left))

    @property
    def cell_seconds(self) -> float:
        return min(self.config.cell_seconds, self.seconds_left)


def fit_pictures(messages: Sequence[Message], config: RunConfig) -> tuple[Message, ...]:
    """The history with the oldest box pictures turned into placeholders until the budget holds.

    Pictures of the prompt always stay. Equal histories give equal results.
    """
    images = [(m, p) for m, message in enumerate(messages) for p in _images(message)]
    count = len(images)
    size = sum(_image(messages, place).size for place in images)
    dropped: set[tuple[int, int]] = set()
    for place in images:
        if count <= config.max_images and size <= config.max_image_bytes:
            break
        image = _image(messages, place)
        if image.origin == "box":
            dropped.add(place)
            count, size = count - 1, size - image.size
    return tuple(_without(message, m, dropped) for m, message in enumerate(messages))


def _images(message: Message) -> list[int]:
    return [p for p, part in enumerate(message.parts) if isinstance(part, Image)]


def _image(messages: Sequence[Message], place: tuple[int, int]) -> Image:
    part = messages[place[0]].parts[place[1]]
    assert isinstance(part, Image)
    return part


def _without(message: Message, index: int, dropped: set[tuple[int, int]]) -> Message:
    parts: list[Part] = []
    for position, part in enumerate(message.parts):
        if (index, position) in dropped and isinstance(part, Image):
            parts.append(
                Text(f"[{part.name} is no longer shown, to save space; save and show it again]")
            )
        else:
            parts.append(part)
    return replace(message, parts=tuple(parts)) if len(dropped) else message
