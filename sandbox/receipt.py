"""What a box says about a cell → `Execution` values. Every byte of it is hostile.

Lengths and counts are bounded, shapes checked, text made valid Unicode, pictures decoded again
under a pixel limit. What does not fit is dropped and said in the note; nothing here raises for it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from PIL import Image

from sandbox.outputs import Display, Dropped, Error, File, Output, Stream
from sandbox.spec import Limits
from sandbox.supervisor.shape import as_dict, as_list

MAX_OUTPUTS = 5000
MAX_FILES = 500
MAX_NOTES = 50
MAX_NOTE_CHARS = 500
MAX_ERROR_CHARS = 20_000
MAX_PICTURE_BYTES = 128 * 1024 * 1024
MAX_SCANS = 100
"""Of a progressive JPEG; each costs a pass over all pixels, however few bytes it has. Cameras and
encoders make about ten."""
_SLACK = 2000
"""Characters above the limit that marks of omission may add."""


@dataclass(slots=True)
class Receipt:
    """The latest state of one cell's outputs."""

    limits: Limits
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
        seen: set[bytes] = set()
        left = self.limits.output_chars + _SLACK
        full, lost = self.limits.pictures, 0
        for raw in self.outputs:
            if raw.get("type") == "picture":
                if sum(isinstance(o, Display) and o.is_picture for o in outputs) >= full:
                    lost += 1
                elif shown := self._picture(raw, seen, notes):
                    outputs.append(shown)
                continue
            output = _text_output(raw, left)
            if output is not None:
                left -= len(output.text) if isinstance(output, Stream | Display) else 0
                outputs.append(output)
        return tuple(outputs), Dropped(
            _count(self.dropped.get("chars")), _count(self.dropped.get("pictures")) + lost
        )

    def _picture(
        self, raw: Mapping[str, Any], seen: set[bytes], notes: list[str]
    ) -> Display | None:
        """None when it was shown already or cannot be shown."""
        data = self.pictures.get(str(raw.get("digest")), b"")
        try:
            display, pixels = decode(data, self.limits.picture_pixels)
        except ValueError as error:
            notes.append(f"A picture is not shown: {error}.")
            return None
        if pixels in seen:
            return None
        seen.add(pixels)
        return display


def decode(data: bytes, max_pixels: int) -> tuple[Display, bytes]:
    """A picture and the digest of its pixels.

    Raises:
        ValueError: neither PNG nor JPEG, damaged, or larger than allowed.
    """
    if data.startswith(b"\xff\xd8") and data.count(b"\xff\xda") > MAX_SCANS:
        raise ValueError(f"a JPEG of more than {MAX_SCANS} scans")
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise ValueError(f"{width}x{height} pixels, allowed are {max_pixels}")
            pixels = image.convert("RGBA")
            mime = "image/png" if image.format == "PNG" else "image/jpeg"
    except (OSError, SyntaxError, Image.DecompressionBombError, MemoryError) as error:
        raise ValueError(f"it cannot be decoded ({type(error).__name__})") from None
    digest = hashlib.sha256(f"{width}x{height}".encode() + pixels.tobytes()).digest()
    return Display(mime, data, width, height), digest


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
    """Valid Unicode of whatever came."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


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
