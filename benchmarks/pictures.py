"""What a picture's bytes say before anyone decodes the pixels: its real format, its hidden text.

Reads PNG chunks and JPEG segments itself, because an imaging library skips text that stands after
the pixels. Bounded work; broken metadata is passed over, never raised.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

_MOST_TEXT = 1 << 20
"""Bytes of one metadata block that are searched."""
_TELLTALE = re.compile(rb"(?i)answer|gold|target|label|truth|solution")
_PNG = b"\x89PNG\r\n\x1a\n"
_SIGNATURES = (
    (_PNG, "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"II*\x00", "tif"),
    (b"MM\x00*", "tif"),
)


def suffix(data: bytes) -> str:
    """The file-name ending of the picture's real format; `bin` for bytes that are no known one
    (they fail, as one sample's input, when they are decoded)."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((name for start, name in _SIGNATURES if data.startswith(start)), "bin")


def hidden_text(data: bytes) -> Iterator[bytes]:
    """Every metadata block: PNG text, EXIF and private chunks, JPEG comments and application
    segments, what follows the picture's end; the whole file for other formats."""
    if data.startswith(_PNG):
        yield from _png_blocks(data)
    elif data.startswith(b"\xff\xd8"):
        yield from _jpeg_blocks(data)
    else:
        yield data


def leaks(data: bytes, answer: str) -> bool:
    """Whether the answer stands in the metadata.

    An answer of four characters or more must stand there between characters that do not continue
    it; a shorter one (a count) also in one block with a word such as `answer`, or alone.
    """
    wanted = answer.strip()
    if not wanted:
        return False
    return any(
        _stands_in(block, wanted, encoding)
        for block in hidden_text(data)
        for encoding in ("utf-8", "utf-16-le", "utf-16-be")
    )


def _stands_in(block: bytes, wanted: str, encoding: str) -> bool:
    needle = wanted.encode(encoding)
    found = re.finditer(re.escape(needle), block)
    if not any(_stands_alone(block, place, encoding) for place in found):
        return False
    if len(wanted) >= 4:
        return True
    if len(block) > _MOST_TEXT:  # pixels: every short text stands somewhere in them
        return False
    told = _TELLTALE.search(block.replace(b"\0", b"")) is not None
    return told or any(part.strip() == needle for part in block.split(b"\0"))


def _stands_alone(block: bytes, found: re.Match[bytes], encoding: str) -> bool:
    width = 1 if encoding == "utf-8" else 2
    before = block[max(found.start() - width, 0) : found.start()].replace(b"\0", b"")
    after = block[found.end() : found.end() + width].replace(b"\0", b"")
    return not (before.isalnum() or after.isalnum())


def _png_blocks(data: bytes) -> Iterator[bytes]:
    at = len(_PNG)
    while at + 8 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + min(length, _MOST_TEXT)]
        if kind == b"zTXt":
            name, _, rest = body.partition(b"\0")
            yield name + b"\0" + _inflated(rest[1:])
        elif kind == b"iTXt":
            name, _, rest = body.partition(b"\0")
            text = rest[2:].split(b"\0", 2)[-1]
            yield name + b"\0" + (_inflated(text) if rest[:1] == b"\1" else text)
        elif kind not in (b"IHDR", b"PLTE", b"IDAT", b"iCCP", b"IEND"):
            yield body
        at += 12 + length
        if kind == b"IEND":
            break
    yield data[at : at + _MOST_TEXT]


def _inflated(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, _MOST_TEXT)
    except zlib.error:
        return packed


def _jpeg_blocks(data: bytes) -> Iterator[bytes]:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == 0xDA:  # the pixels begin
            break
        if marker == 0xFE or 0xE0 <= marker <= 0xEF:
            yield data[at + 4 : at + 2 + length]
        at += 2 + length
    end = data.rfind(b"\xff\xd9")
    if end >= 0:
        yield data[end + 2 : end + 2 + _MOST_TEXT]
