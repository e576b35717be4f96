"""What a picture file says of itself beside its pixels: its kind, the turn that it asks for, its
frames, its colour profile. Read in bounded time from hostile bytes; what is broken says nothing.

An imaging library would follow every chain and add up every block; this looks at the few bytes that
matter. Formats: https://www.w3.org/TR/png-3/, TIFF 6.0, GIF89a, the WebP container, ITU-T T.81.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

MOST_FRAMES = 1000
"""Counting ends here."""
_MOST_STEPS = 100_000
"""Chunks, segments, blocks or directories of a file that are looked at."""
_PNG = b"\x89PNG\r\n\x1a\n"
_ORIENTATION = 274
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_HEIC = re.compile(rb"heic|heix|heim|heis|hevc|hevx|mif1|msf1")
_FOREIGN = (
    (b"%PDF", "a PDF document", "render the page to PNG"),
    (b"%!PS", "a PostScript drawing", "render it to PNG"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript drawing", "render it to PNG"),
    (b"8BPS", "a Photoshop document", "export it as PNG"),
    (b"PK\x03\x04", "a ZIP archive", "unpack it"),
    (b"\x1f\x8b", "a gzip archive", "unpack it"),
    (b"SIMPLE  =", "a FITS file", "convert it to TIFF or PNG"),
    (b"\x89HDF", "an HDF5 file", "convert it to TIFF or PNG"),
)


def is_png(data: bytes) -> bool:
    return data.startswith(_PNG)


def is_jpeg(data: bytes) -> bool:
    return data.startswith(b"\xff\xd8\xff")


def foreign(data: bytes) -> tuple[str, str]:
    """What bytes that cannot be read as a picture look like, and what to do with them."""
    if not data:
        return "an empty file", "fetch it again"
    for start, name, advice in _FOREIGN:
        if data.startswith(start):
            return name, advice
    if data[4:8] == b"ftyp" and _HEIC.search(data[8:40]) and b"avif" not in data[8:40]:
        return "a HEIC picture, which cannot be read here", "convert it to PNG or JPEG"
    head = data[:1024].lower()
    if b"<svg" in head:
        return "an SVG drawing", "render it to PNG"
    if b"<html" in head or b"<!doctype" in head:
        return "a web page", "fetch the picture itself"
    return f"{len(data)} bytes that begin with {data[:8]!r}", "convert it"


# --- EXIF -----------------------------------------------------------------------------------------


def orientation(data: bytes, exif: bytes = b"") -> int:
    """EXIF's orientation, 1 to 8; 1 (upright) when there is none or it makes no sense. `exif` is
    the block of a format that is not taken apart here."""
    value = next((v for block in (*_exif_blocks(data), exif) if (v := _turn(block))), 1)
    return value if 1 <= value <= 8 else 1


def _exif_blocks(data: bytes) -> Iterator[bytes]:
    if is_png(data):
        yield from (body for kind, body in _png_chunks(data) if kind == b"eXIf")
    elif is_jpeg(data):
        yield from (s for kind, s in _jpeg_segments(data) if kind == 0xE1 and s[:5] == b"Exif\0")
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        yield from (body for kind, body in _riff_chunks(data) if kind == b"EXIF")
    elif data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        yield data


def _turn(block: bytes) -> int | None:
    """Tag 274 of the first directory of a TIFF structure."""
    tiff = block[6:] if block[:6] == b"Exif\0\0" else block
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return None
    for tag, kind, count, value in _entries(tiff, order, _first_directory(tiff, order)):
        if tag == _ORIENTATION and kind in (3, 4) and count == 1:
            return int(struct.unpack_from(order + ("H" if kind == 3 else "I"), value)[0])
    return None


def _is_big(tiff: bytes, order: str) -> bool:
    return tiff[2:4] == struct.pack(order + "H", 43)


def _first_directory(tiff: bytes, order: str) -> int:
    at, form = (8, order + "Q") if _is_big(tiff, order) else (4, order + "I")
    return _number(tiff, at, form)


def _entries(tiff: bytes, order: str, at: int) -> Iterator[tuple[int, int, int, bytes]]:
    """(tag, type, count, the value's four bytes) of the directory at this place."""
    big = _is_big(tiff, order)
    count = _number(tiff, at, order + ("Q" if big else "H"))
    form = struct.Struct(order + ("HHQ4s4x" if big else "HHI4s"))
    start = at + (8 if big else 2)
    for n in range(min(count, 65_535)):
        if start + (n + 1) * form.size > len(tiff):
            return
        yield form.unpack_from(tiff, start + n * form.size)


def _number(data: bytes, at: int, form: str) -> int:
    """0 outside of the data."""
    if at < 0 or at + struct.calcsize(form) > len(data):
        return 0
    return int(struct.unpack_from(form, data, at)[0])


# --- frames ---------------------------------------------------------------------------------------


def frames(data: bytes) -> int:
    """How many frames or pages the file has, at most `MOST_FRAMES` + 1 are counted."""
    if is_png(data):
        told = (body for kind, body in _png_chunks(data) if kind == b"acTL")
        return max(1, min(_number(next(told, b""), 0, ">I"), MOST_FRAMES + 1))
    if data[:4] == b"GIF8":
        return max(1, _gif_frames(data))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        counted = sum(kind == b"ANMF" for kind, _ in _riff_chunks(data))
        return max(1, min(counted, MOST_FRAMES + 1))
    if data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return max(1, _tiff_pages(data))
    return 1


def _tiff_pages(tiff: bytes) -> int:
    order = "<" if tiff[:2] == b"II" else ">"
    big = _is_big(tiff, order)
    width, step, entry = (8, 8, 20) if big else (4, 2, 12)
    at, seen = _first_directory(tiff, order), set[int]()
    while at and at not in seen and len(seen) <= MOST_FRAMES:
        seen.add(at)
        count = _number(tiff, at, order + ("Q" if big else "H"))
        at = _number(tiff, at + step + entry * count, order + ("Q" if width == 8 else "I"))
    return len(seen)


def _gif_frames(data: bytes) -> int:
    """Image descriptors between the header and the end; each frame's blocks are skipped."""
    at = 13 + _gif_table(data, 10)
    count = steps = 0
    while at < len(data) and count <= MOST_FRAMES and steps < _MOST_STEPS:
        steps += 1
        kind = data[at]
        if kind == 0x2C:
            count += 1
            at += 11 + _gif_table(data, at + 9)
        elif kind == 0x21:
            at += 2
        else:
            break
        while at < len(data) and data[at] and steps < 50 * _MOST_STEPS:
            steps += 1
            at += 1 + data[at]
        at += 1
    return count


def _gif_table(data: bytes, at: int) -> int:
    """Bytes of the colour table that the flags at this place announce."""
    flags = data[at] if at < len(data) else 0
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


# --- colour profiles ------------------------------------------------------------------------------


def has_foreign_profile(data: bytes, profile: bytes = b"") -> bool:
    """Whether a colour profile other than sRGB is in the file. `profile` is the one of a format
    that is not taken apart here."""
    found = profile
    if is_png(data):
        packed = next((b for kind, b in _png_chunks(data) if kind == b"iCCP"), b"")
        found = _inflated(packed.partition(b"\0")[2][1:])
    elif is_jpeg(data):
        blocks = (s for kind, s in _jpeg_segments(data) if kind == 0xE2)
        found = next((s for s in blocks if s[:12] == b"ICC_PROFILE\0"), b"")
    return bool(found) and b"sRGB" not in found and "sRGB".encode("utf-16-be") not in found


def _inflated(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, 1 << 16)
    except zlib.error:
        return b""


# --- containers -----------------------------------------------------------------------------------


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    for _ in range(_MOST_STEPS):
        if at + 12 > len(data):
            return
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind != b"IDAT":
            yield kind, data[at + 8 : at + 8 + length]
        at += 12 + length


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Those before the pixels."""
    at = 2
    for _ in range(_MOST_STEPS):
        match = _MARKER.search(data, at)
        if match is None or data[match.start() + 1] in (0xDA, 0xD9):
            return
        start = match.start()
        at = start + 2 + _number(data, start + 2, ">H")
        yield data[start + 1], data[start + 4 : at]


def _riff_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 12
    for _ in range(_MOST_STEPS):
        if at + 8 > len(data):
            return
        kind, length = struct.unpack_from("<4sI", data, at)
        yield kind, data[at + 8 : at + 8 + length]
        at += 8 + length + (length & 1)
