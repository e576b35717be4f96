"""PNG and JPEG files taken down to what their pixels need. Pure, one pass, bounded.

Whatever else such a file carries (EXIF, XMP, colour profiles, text, animation, a second picture,
bytes after the end) costs its reader time, or tells it something that nobody meant to say. Here it
is left out without being looked at, so that a decoder meets size, tables and pixels only. Pixel
data is copied, never decoded: whether it is whole is the decoder's to find out.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Literal

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
MAX_CHUNKS = 65_536
"""Of a PNG. Encoders write 8 KiB or more a chunk: 16 million pixels make 8000 at most."""
MAX_SEGMENTS = 4096
"""Of a JPEG, metadata and scans included."""

_KEPT_CHUNKS = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
"""PNG colour type → bits a sample."""
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_END = b"\0\0\0\0IEND\xaeB`\x82"

_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""Not: a stuffed zero, a restart, a fill byte."""
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TABLES = frozenset({0xC4, 0xCC, 0xDB, 0xDC, 0xDD})
_START, _STOP, _SCAN = 0xD8, 0xD9, 0xDA
_JFIF, _ADOBE = b"JFIF\0", b"Adobe"


@dataclass(frozen=True, slots=True)
class Plain:
    """A PNG or JPEG with nothing but its pixels; the very same bytes where nothing was left out."""

    data: bytes = field(repr=False)
    mime: Literal["image/png", "image/jpeg"]
    width: int
    height: int
    packed_bytes: int
    """Of the pixels as they are encoded."""
    raw_bytes: int = 0
    """PNG: the most that its pixels inflate to."""
    scans: int = 0
    """JPEG: passes over the pixels."""
    frame: int = 0
    """JPEG: the marker of its kind; 0xC0 to 0xC2 are the ones in use (baseline, extended,
    progressive)."""


def plain(data: bytes) -> Plain:
    """
    Raises:
        ValueError: neither PNG nor JPEG, or not built like one. One line, without a full stop.
    """
    if data.startswith(PNG):
        return _png(data)
    if data.startswith(JPEG):
        return _jpeg(data)
    raise ValueError("neither PNG nor JPEG")


# --- PNG ------------------------------------------------------------------------------------------


def _png(data: bytes) -> Plain:
    width, height, depth, colour, interlaced = _png_header(data)
    kept: list[tuple[int, int]] = []
    packed = 0
    at, count = len(PNG), 0
    ended = False
    while not ended and at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        if end > len(data):
            break  # cut off: the decoder will miss its pixels, if it misses any
        count += 1
        if count > MAX_CHUNKS:
            raise ValueError(f"a PNG of more than {MAX_CHUNKS} chunks")
        if kind in _KEPT_CHUNKS:
            kept.append((at, end))
            packed += end - at - 12 if kind == b"IDAT" else 0
        ended = kind == b"IEND"
        at = end
    if colour == 3 and not any(data[a + 4 : a + 8] == b"PLTE" for a, _ in kept[:3]):
        raise ValueError("a PNG without its palette")
    whole = ended and at == len(data) and len(kept) == count
    body = data if whole else b"".join([PNG, *(data[a:b] for a, b in kept), b"" if ended else _END])
    row = (width * depth * _SAMPLES[colour] + 7) // 8 + 1
    # Interlaced: seven small pictures, whose rows each have a filter byte and up to 7 bits more.
    raw = row * height + (4 * height + 64 if interlaced else 0)
    return Plain(body, "image/png", width, height, packed, raw)


def _png_header(data: bytes) -> tuple[int, int, int, int, int]:
    if len(data) < 33 or data[8:16] != b"\0\0\0\x0dIHDR":
        raise ValueError("a PNG without a header")
    width, height, depth, colour, packing, filters, interlaced = struct.unpack_from(
        ">IIBBBBB", data, 16
    )
    if depth not in _DEPTHS.get(colour, ()) or packing or filters or interlaced > 1:
        raise ValueError("a PNG whose header makes no sense")
    return width, height, depth, colour, interlaced


# --- JPEG -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Jpeg:
    """What has been kept of a JPEG so far."""

    parts: list[bytes] = field(default_factory=lambda: [b"\xff\xd8"])
    size: tuple[int, int] = (0, 0)
    frame: int = 0
    scans: int = 0
    packed: int = 0
    told: set[bytes] = field(default_factory=set[bytes])
    """Which of the two headers that decide on colours were kept."""

    def segment(self, marker: int, segment: bytes) -> None:
        if marker in _FRAMES:
            self._frame(marker, segment)
        elif marker == _SCAN:
            if not self.frame:
                raise ValueError("a JPEG whose pixels come before its size")
            self.scans += 1
        elif marker not in _TABLES:
            segment = self._colours(marker, segment)
        self.parts.append(segment)

    def pixels(self, data: bytes) -> None:
        self.parts.append(data)
        self.packed += len(data)

    def _frame(self, marker: int, segment: bytes) -> None:
        if self.frame or len(segment) < 10:
            raise ValueError("a JPEG with two sizes" if self.frame else "a JPEG without a size")
        self.frame = marker
        height, width = struct.unpack_from(">HH", segment, 5)
        self.size = width, height

    def _colours(self, marker: int, segment: bytes) -> bytes:
        """The two headers that say how to read the colours, once each and without thumbnail."""
        for wanted, name in ((0xE0, _JFIF), (0xEE, _ADOBE)):
            if marker == wanted and segment[4:].startswith(name) and name not in self.told:
                self.told.add(name)
                if name == _JFIF and len(segment) > 18:
                    return segment[:2] + b"\0\x10" + segment[4:16] + b"\0\0"
                return segment
        return b""


def _jpeg(data: bytes) -> Plain:
    found = _Jpeg()
    at, count = 2, 0
    in_scan = ended = False
    while not ended and (match := _MARKER.search(data, at)):
        start, marker = match.start(), data[match.start() + 1]
        count += 1
        if count > MAX_SEGMENTS:
            raise ValueError(f"a JPEG of more than {MAX_SEGMENTS} segments")
        if in_scan:
            found.pixels(data[at:start])
        if marker in (_START, 0x01):
            at, in_scan = start + 2, False
            continue
        if marker == _STOP:
            found.parts.append(b"\xff\xd9")
            ended = True
            break
        at = start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
        if at > len(data) or at < start + 4:
            at, in_scan = len(data), False
            break  # cut off: the decoder will miss what it needs
        found.segment(marker, data[start:at])
        in_scan = marker == _SCAN
    if in_scan and not ended:
        found.pixels(data[at:])
    if not found.scans:
        raise ValueError("a JPEG without pixels")
    body = b"".join(found.parts)
    return Plain(
        data if body == data else body,
        "image/jpeg",
        *found.size,
        found.packed,
        scans=found.scans,
        frame=found.frame,
    )
