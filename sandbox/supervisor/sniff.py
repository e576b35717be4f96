"""Reads the size of an encoded picture from its first bytes, without decoding it."""

from __future__ import annotations

import struct
from typing import Literal

Mime = Literal["image/png", "image/jpeg", "other"]

_PNG = b"\x89PNG\r\n\x1a\n"
_MAX_SCANS = 100
_MAX_SCAN_PIXELS = 200_000_000
_MAX_JPEG_BYTES = 32 * 1024 * 1024
"""A JPEG of more takes long to decode and the host refuses it: it is left to the helper here, which
has a time limit. The same numbers stand in the host's `sandbox/decoding.py`."""
_USUAL_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
_NO_SIZE = frozenset({0x01, *range(0xD0, 0xDA)})
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
)


def sniff(data: bytes) -> tuple[Mime, int, int]:
    """Type, width and height; `other` with 0 × 0 for anything but sound PNG and JPEG."""
    if data.startswith(_PNG) and data[12:16] == b"IHDR" and len(data) >= 33:
        width, height, depth, colour = struct.unpack_from(">IIBB", data, 16)
        moving = data.find(b"acTL", 33, 4096) >= 0  # its frames are counted by the helper
        if width and height and depth <= 8 and colour in (0, 2, 3, 4, 6) and not moving:
            return "image/png", width, height
    elif data.startswith(b"\xff\xd8\xff") and len(data) <= _MAX_JPEG_BYTES:
        width, height = _jpeg_size(data)
        scans = data.count(b"\xff\xda")
        if 0 < width * height * scans <= _MAX_SCAN_PIXELS and scans <= _MAX_SCANS:
            return "image/jpeg", width, height
    return "other", 0, 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            if marker not in _USUAL_FRAMES:
                break
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:
            at += 1
        elif marker in _NO_SIZE:
            at += 2
        else:
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return 0, 0
