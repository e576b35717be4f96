"""What a cell gives back: frozen values, and their JSON shape (the one `pot exec` prints).

The words are Jupyter's own: a cell produces streams, displays and errors. Everything else in an
`Execution` is measured outside the kernel (waitpid, the clock, the cgroup).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["ok", "error", "timeout", "died"]
Kernel = Literal["kept", "restarted"]


@dataclass(frozen=True, slots=True)
class Stream:
    """Text written to standard output or standard error; neighbours of one name are merged."""

    name: Literal["stdout", "stderr"]
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"type": "stream", "name": self.name, "text": self.text}


@dataclass(frozen=True, slots=True)
class Display:
    """One picture (`image/png`, `image/jpeg`) or one plain-text value (`text/plain`)."""

    mime: Literal["image/png", "image/jpeg", "text/plain"]
    data: bytes
    """The encoded picture, or the text in UTF-8."""
    width: int = 0
    """Pixels; 0 for text."""
    height: int = 0

    @property
    def is_picture(self) -> bool:
        return self.mime != "text/plain"

    @property
    def text(self) -> str:
        """The text of a `text/plain` display."""
        return self.data.decode("utf-8")

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def to_json(self) -> dict[str, Any]:
        if not self.is_picture:
            return {"type": "display", "mime": self.mime, "text": self.text}
        return {
            "type": "display",
            "mime": self.mime,
            "data": base64.b64encode(self.data).decode("ascii"),
            "width": self.width,
            "height": self.height,
        }


@dataclass(frozen=True, slots=True)
class Error:
    """An exception that reached the top of the cell."""

    name: str
    message: str
    traceback: str
    """One string, lines joined by newlines, without ANSI codes."""

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "error",
            "name": self.name,
            "message": self.message,
            "traceback": self.traceback,
        }


Output = Stream | Display | Error


@dataclass(frozen=True, slots=True)
class File:
    """A file that the cell made or changed."""

    path: str
    """Relative to the work directory, `/` between parts."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """What the caps took away while the cell ran."""

    chars: int = 0
    pictures: int = 0


@dataclass(frozen=True, slots=True)
class Execution:
    """One cell's record."""

    outputs: tuple[Output, ...]
    status: Status
    """`ok`; `error`: an exception at top level, SystemExit included; `timeout`: the deadline,
    however it was enforced; `died`: the kernel's process ended."""
    cause: str | None
    """None, `deadline`, `out_of_memory`, `signal:N`, `exit:N`, `too_many_processes`, `box_lost`."""
    kernel: Kernel
    """`restarted` when all variables were lost."""
    seconds: float
    """Wall time from the request to the last output."""
    cpu_seconds: float
    peak_mb: float
    """Highest resident memory seen, MiB."""
    files: tuple[File, ...] = ()
    dropped: Dropped = Dropped()
    note: str | None = None
    """What else the model is told: lost state, omitted HTML, where the full text lies."""

    @property
    def pictures(self) -> tuple[Display, ...]:
        return tuple(o for o in self.outputs if isinstance(o, Display) and o.is_picture)

    @property
    def text(self) -> str:
        """All text of the cell, in order: streams, plain values, tracebacks."""
        parts: list[str] = []
        for output in self.outputs:
            if isinstance(output, Error):
                parts.append(output.traceback)
            elif isinstance(output, Stream) or not output.is_picture:
                parts.append(output.text)
        return "\n".join(part.rstrip("\n") for part in parts)

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "cause": self.cause,
            "kernel": self.kernel,
            "seconds": round(self.seconds, 4),
            "cpu_seconds": round(self.cpu_seconds, 4),
            "peak_mb": round(self.peak_mb, 1),
            "outputs": [output.to_json() for output in self.outputs],
            "files": [{"path": f.path, "bytes": f.bytes} for f in self.files],
            "dropped": {"chars": self.dropped.chars, "pictures": self.dropped.pictures},
            "note": self.note,
        }
