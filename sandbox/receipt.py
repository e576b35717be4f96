"""What a box says about a cell → `Execution` values. Every byte of it is hostile.

Lengths and counts are bounded, shapes checked, text made valid Unicode, pictures decoded again
under a pixel limit. What does not fit is dropped and said in the note; nothing here raises for it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sandbox.decoding import decode
from sandbox.outputs import Display, Dropped, Error, File, Output, Status, Stream
from sandbox.spec import Limits
from sandbox.supervisor.shape import as_dict, as_list

MAX_OUTPUTS = 5000
MAX_FILES = 500
MAX_NOTES = 50
MAX_ERRORS = 8
"""More than a supervisor keeps: the last word on what reaches the model is the host's."""
MAX_NOTE_CHARS = 500
MAX_ERROR_CHARS = 20_000
MAX_PICTURE_BYTES = 128 * 1024 * 1024
MAX_CPU_SECONDS = 8.0
"""For decoding all pictures of one cell; sixteen million pixels of an ordinary one take 0.3 s."""
_DEATHS = re.compile(r"out_of_memory|too_many_processes|signal:[0-9]{1,3}|exit:[0-9]{1,3}")
_SLACK = 2000
"""Characters above the limit that marks of omission may add."""


@dataclass(slots=True)
class Receipt:
    """The latest state of one cell's outputs."""

    limits: Limits
    cpu_seconds: float = MAX_CPU_SECONDS
    outputs: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    pictures: dict[str, bytes] = field(default_factory=dict[str, bytes])
    dropped: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def take(self, header: Mapping[str, Any], parts: tuple[bytes, ...]) -> None:
        """A `partial` or `done` frame: the outputs replace the earlier ones."""
        self.outputs = _objects(header.get("outputs"), MAX_OUTPUTS)
        self.dropped = as_dict(header.get("dropped"))
        for digest, data in zip(as_list(header.get("pictures")), parts, strict=False):
            if isinstance(digest, str):
                self.pictures[digest] = data
        self._forget_unused()

    def _forget_unused(self) -> None:
        """Keeps what is shown now, up to a number of bytes that one cell may send."""
        shown = {str(output.get("digest")) for output in self.outputs}
        kept: dict[str, bytes] = {}
        total = 0
        for digest, data in self.pictures.items():
            total += len(data)
            if digest in shown and total <= MAX_PICTURE_BYTES:
                kept[digest] = data
        self.pictures = kept

    def read(self, notes: list[str]) -> tuple[tuple[Output, ...], Dropped]:
        """The typed outputs. CPU-heavy (decodes pictures): run it in a thread. Adds to `notes`."""
        outputs: list[Output] = []
        left = self.limits.output_chars + _SLACK
        shown, lost, errors = _Shown(self, notes), 0, 0
        for raw in self.outputs:
            if raw.get("type") == "picture":
                if shown.count >= self.limits.pictures:
                    lost += 1
                elif display := shown.next(str(raw.get("digest"))):
                    outputs.append(display)
                continue
            output = _text_output(raw, left)
            if isinstance(output, Error):
                errors += 1
                if errors > MAX_ERRORS:
                    continue
            if output is not None:
                left -= len(output.text) if isinstance(output, Stream | Display) else 0
                outputs.append(output)
        return tuple(outputs), Dropped(
            _count(self.dropped.get("chars")), _count(self.dropped.get("pictures")) + lost
        )


class _Shown:
    """The pictures of one cell, each digest looked at once, equal pixels shown once."""

    def __init__(self, receipt: Receipt, notes: list[str]) -> None:
        self._pictures = receipt.pictures
        self._max_pixels = receipt.limits.picture_pixels
        self._notes = notes
        self._tried: set[str] = set()
        self._seen: set[bytes] = set()
        self._until = time.thread_time() + receipt.cpu_seconds
        self.count = 0

    def next(self, digest: str) -> Display | None:
        """None when it was shown already or cannot be shown."""
        if digest in self._tried:
            return None
        self._tried.add(digest)
        try:
            if time.thread_time() >= self._until:
                raise ValueError("the others took too long to decode")
            display, pixels = decode(self._pictures.get(digest, b""), self._max_pixels)
        except ValueError as error:
            if len(self._notes) < MAX_NOTES:
                self._notes.append(f"A picture is not shown: {error}.")
            return None
        if pixels in self._seen:
            return None
        self._seen.add(pixels)
        self.count += 1
        return display


def ending(header: Mapping[str, Any], *, late: bool) -> tuple[Status, str | None] | None:
    """Status and cause of a cell that the box says is done; None when no supervisor would say so.

    Whether the deadline has passed is the host's to know: a box that claims it before lies, and
    whatever it says of a cell that ended after is a timeout.
    """
    status, cause = header.get("status"), header.get("cause")
    if late and status in ("ok", "error", "timeout", "died"):
        return "timeout", "deadline"
    if status == "ok" and cause is None:
        return "ok", None
    if status == "error" and cause is None:
        return "error", None
    if status == "died" and isinstance(cause, str) and _DEATHS.fullmatch(cause):
        return "died", cause
    return None


def notes_of(header: Mapping[str, Any]) -> list[str]:
    return [text(note)[:MAX_NOTE_CHARS] for note in as_list(header.get("notes"))[:MAX_NOTES]]


def files_of(header: Mapping[str, Any]) -> tuple[File, ...]:
    return tuple(
        File(text(entry.get("path"))[:1024], _count(entry.get("bytes")))
        for entry in _objects(header.get("files"), MAX_FILES)
    )


def number(value: Any) -> float:
    """A plausible measurement, else 0."""
    if isinstance(value, int | float) and 0 <= value < 1e9:
        return float(value)
    return 0.0


def text(value: Any) -> str:
    """Valid Unicode of a text; of anything else only its kind (it may be a million brackets)."""
    shown = value if isinstance(value, str) else f"({type(value).__name__})"
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


def _text_output(raw: Mapping[str, Any], left: int) -> Output | None:
    kind = raw.get("type")
    if kind == "stream":
        name: Literal["stdout", "stderr"] = "stderr" if raw.get("name") == "stderr" else "stdout"
        shown = text(raw.get("text", ""))[: max(0, left)]
        return Stream(name, shown) if shown else None
    if kind == "value":
        shown = text(raw.get("text", ""))[: max(0, left)]
        return Display("text/plain", shown.encode("utf-8")) if shown else None
    if kind == "error":
        return Error(
            text(raw.get("name"))[:200],
            text(raw.get("message", ""))[:MAX_ERROR_CHARS],
            text(raw.get("traceback", ""))[:MAX_ERROR_CHARS],
        )
    return None


def _objects(value: Any, most: int) -> list[Mapping[str, Any]]:
    return [entry for raw in as_list(value)[:most] if (entry := as_dict(raw))]


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 62 else 0
