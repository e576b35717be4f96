"""Chooses the one representation of a display: a picture, else text; HTML and the like are told of,
not shown."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from .items import Picture, Text
from .shape import as_dict, as_list

_TEXTS = ("text/markdown", "text/latex", "text/plain")
_OMITTED = {
    "text/html": "HTML",
    "image/svg+xml": "SVG",
    "application/javascript": "JavaScript",
    "application/pdf": "PDF",
}


def choose(data: Mapping[str, Any], display_id: str | None) -> tuple[Text | Picture, str | None]:
    """The item to show, and a note on what was left out. Hostile input gives an empty text."""
    note: str | None = None
    for mime in ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff"):
        picture = _decode(data.get(mime))
        if picture:
            return Picture(picture, display_id), None
    text = _text(data)
    for mime, name in _OMITTED.items():
        value = data.get(mime)
        if isinstance(value, str) and (not text or _is_repr(text)):
            note = f"{name} output omitted ({max(1, len(value) // 1000)} kB)."
            text = ""
            break
    return Text("value", text, display_id=display_id), note


def shrunk_from(metadata: Any) -> tuple[int, int] | None:
    """The size a picture had before our formatter made it smaller."""
    size = as_list(as_dict(as_dict(metadata).get("image/png")).get("shrunk_from"))
    if len(size) == 2 and all(type(side) is int for side in size):
        return size[0], size[1]
    return None


def _text(data: Mapping[str, Any]) -> str:
    for mime in _TEXTS:
        value = data.get(mime)
        if isinstance(value, str):
            return value
    return ""


def _is_repr(text: str) -> bool:
    """Whether text/plain is only an object's name: `<IPython.core.display.HTML object>`."""
    return text.startswith("<") and text.endswith(">") and "\n" not in text


def _decode(value: Any) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return None
