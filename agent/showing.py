"""Pictures and text of a record made safe and small enough to stand in a page.

Text: what a reader could not see or would be misled by (control characters, bidirectional
overrides) is made visible; escaping is the template's. Pictures: inline where there is room, else
by reference to the run's `images/`.
"""

from __future__ import annotations

import base64
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image as Pillow

LONGEST = 20_000
"""Characters of one block; the record has the rest."""
_THUMBNAIL = 512
"""Pixels of the longer side."""
_INVISIBLE = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff\\ud800-\\udfff]"
)

Way = Literal["whole", "small", "linked"]
"""How pictures stand in a page: as they are, shrunk, or only referred to."""


def visible(text: str) -> str:
    """The text with every control, override and lone surrogate written out, as `\\u202e`.

    Carriage returns before a newline are dropped; escape sequences of a terminal stay harmless.
    """
    return _INVISIBLE.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cut(text: str, longest: int = LONGEST) -> str:
    """At most so many characters, head and tail, with the number left out between."""
    if len(text) <= longest:
        return text
    half = longest // 2
    missing = len(text) - 2 * half
    return f"{text[:half]}\n… {missing} characters are only in the record …\n{text[-half:]}"


@dataclass(slots=True)
class Gallery:
    """Gives each picture its `src`; `room` is what may still go inline, in bytes of base64."""

    images: Path
    page: Path
    """The folder of the page, which references start from."""
    way: Way
    room: int

    def source(self, name: str, data: bytes, mime: str) -> str:
        """A data URL, or a relative reference where there is no more room."""
        if self.way == "linked":
            return self.reference(name)
        if self.way == "small" and len(data) > 32_768:
            data, mime = thumbnail(data), "image/jpeg"
        url = f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"
        if len(url) > self.room:
            return self.reference(name)
        self.room -= len(url)
        return url

    def reference(self, name: str) -> str:
        relative = os.path.relpath(self.images / name, self.page)
        return Path(relative).as_posix()


def thumbnail(data: bytes) -> bytes:
    """A JPEG of at most 512 pixels a side, on white where it was transparent."""
    with Pillow.open(io.BytesIO(data)) as opened:
        opened.draft("RGB", (_THUMBNAIL, _THUMBNAIL))
        rgba = opened.convert("RGBA")
    rgba.thumbnail((_THUMBNAIL, _THUMBNAIL))
    flat = Pillow.new("RGB", rgba.size, "white")
    flat.paste(rgba, mask=rgba.getchannel("A"))
    buffer = io.BytesIO()
    flat.save(buffer, "JPEG", quality=82)
    return buffer.getvalue()


def way_for(images: Path, room: int) -> Way:
    """Whole pictures where all of a run fit, else small ones; the rest is linked when room ends."""
    total = sum(entry.stat().st_size for entry in os.scandir(images))
    return "whole" if total * 4 / 3 <= room else "small"
