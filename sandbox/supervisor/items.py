"""The pieces of a cell's output while they are being put together (see `screen`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from .terminal import Fold


@dataclass(slots=True)
class Text:
    """Printed text (`stdout`, `stderr`) or a plain value (`value`)."""

    name: str
    text: str = ""
    fold: Fold | None = None
    display_id: str | None = None

    @property
    def whole(self) -> str:
        return self.text + (self.fold.line if self.fold else "")


@dataclass(slots=True)
class Picture:
    data: bytes = field(repr=False)
    display_id: str | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        self.digest = hashlib.sha256(self.data).hexdigest()


@dataclass(slots=True)
class Failure:
    name: str
    message: str
    traceback: str


@dataclass(slots=True)
class Slot:
    """The place of a message that is on its way; `clears` once it turned out to be clear_output."""

    message: str
    clears: bool = False


@dataclass(slots=True)
class Gap:
    """Where text was taken out."""

    chars: int


Item = Text | Picture | Failure | Slot | Gap
