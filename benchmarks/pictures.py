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
    (b"II+\x00", "tif"),
    (b"MM\x00+", "tif"),
    (b"\x00\x00\x00\x0cjP  ", "jp2"),
    (b"\xff\x4f\xff\x51", "j2k"),
    (b"\x00\x00\x01\x00", "ico"),
    (b"P5", "pgm"),
    (b"P6", "ppm"),
)
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""Of a JPEG; not a stuffed zero, a restart or a fill byte."""
_BETWEEN = rb"[^0-9A-Za-z]{1,4}?(?:[A-Za-z_]{1,12}[^0-9A-Za-z]{1,4}?)?"
"""What may stand between two parts of an answer: `-37,112` is told as `dx: -37, dy: 112` too."""


def suffix(data: bytes) -> str:
    """The file-name ending of the picture's real format; `bin` for bytes that are no known one
    (they fail, as one sample's input, when they are decoded)."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[4:12] in (b"ftypavif", b"ftypavis"):
        return "avif"
    return next((name for start, name in _SIGNATURES if data.startswith(start)), "bin")


def hidden_text(data: bytes) -> Iterator[bytes]:
    """Every metadata block: PNG text, profile, EXIF and private chunks, JPEG comments and
    application segments, what follows the picture's end; the whole file for other formats."""
    if data.startswith(_PNG):
        yield from _png_blocks(data)
    elif data.startswith(b"\xff\xd8"):
        yield from _jpeg_blocks(data)
    else:
        yield data


def leaks(data: bytes, answer: str) -> bool:
    """Whether the answer stands in the metadata, in UTF-8, Latin-1 or UTF-16.

    An answer of four characters or more must stand there between characters that do not continue
    it, its parts in any punctuation; a shorter one (a count) also in one block with a word such as
    `answer`, or alone. Not found: what is encoded further (base64, hexadecimal) or paraphrased.
    """
    wanted = answer.strip()
    if not wanted:
        return False
    forms = [_pattern(wanted, encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be")]
    short = len(wanted) < 4
    return any(_stands_in(block, wanted, forms, short=short) for block in hidden_text(data))


def _pattern(wanted: str, encoding: str) -> re.Pattern[bytes]:
    if not wanted.isascii():
        return re.compile(re.escape(wanted.encode(encoding)))
    parts = [re.escape(part.encode()) for part in re.split(r"[\s,;]+", wanted) if part]
    return re.compile(_BETWEEN.join(parts))


def _stands_in(block: bytes, wanted: str, forms: list[re.Pattern[bytes]], *, short: bool) -> bool:
    # ASCII text in UTF-16; in front of it EXIF names the character set.
    narrow = block.replace(b"UNICODE\0", b" ").replace(b"\0", b"")
    texts = (block, narrow) if wanted.isascii() else (block,)
    found = any(
        not wanted.isascii() or _stands_alone(text, match)
        for text in texts
        for form in forms[: 1 if wanted.isascii() else None]
        for match in form.finditer(text)
    )
    if not found or not short:
        return found
    if len(block) > _MOST_TEXT:  # pixels: every short text stands somewhere in them
        return False
    told = _TELLTALE.search(narrow) is not None
    alone = wanted.encode()
    return told or any(part.strip() == alone for part in (*block.split(b"\0"), narrow))


def _stands_alone(text: bytes, found: re.Match[bytes]) -> bool:
    before, after = (
        text[max(found.start() - 1, 0) : found.start()],
        text[found.end() : found.end() + 1],
    )
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
        elif kind == b"iCCP":
            name, _, rest = body.partition(b"\0")
            yield name
            yield _inflated(rest[1:])
        elif kind not in (b"IHDR", b"PLTE", b"IDAT", b"IEND"):
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
    """Between the scans of a progressive JPEG too."""
    at = 2
    while match := _MARKER.search(data, at):
        start, marker = match.start(), data[match.start() + 1]
        if marker == 0xD9:
            yield data[start + 2 : start + 2 + _MOST_TEXT]
            return
        length = int.from_bytes(data[start + 2 : start + 4], "big")
        if marker == 0xFE or 0xE0 <= marker <= 0xEF:
            yield data[start + 4 : start + 2 + length]
        at = start + 2 + length
