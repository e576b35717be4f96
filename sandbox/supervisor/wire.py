"""Frames between host and supervisor: length-prefixed, bounded, JSON header and binary parts.

    4 bytes  length of the rest, big endian
    4 bytes  length of the header
    header   a JSON object with at least `type` (text); `parts` lists the lengths of what follows
    parts    binary payloads, one after the other

No pickle, no eval. Each side treats the other's bytes as hostile: a frame that is too long, is not
an object or whose parts do not add up raises `FrameError`, and the stream is useless from then on.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .shape import as_dict, as_list

MAX_FRAME = 192 * 1024 * 1024
"""Bytes of one frame."""
MAX_HEADER = 8 * 1024 * 1024
MAX_PARTS = 256

_LENGTHS = struct.Struct(">II")


class FrameError(ValueError):
    """The peer's bytes are not a frame of ours."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: a JSON object and binary parts."""

    header: Mapping[str, Any]
    parts: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def type(self) -> str:
        return self.header["type"]


def encode(header: Mapping[str, Any], parts: Sequence[bytes] = ()) -> bytes:
    """The bytes of one frame.

    Raises:
        FrameError: the frame would exceed the bounds that the other side enforces.
    """
    full = {**header, "parts": [len(part) for part in parts]}
    text = json.dumps(full, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    length = 4 + len(text) + sum(full["parts"])
    if length > MAX_FRAME or len(text) > MAX_HEADER or len(parts) > MAX_PARTS:
        raise FrameError(f"a frame of {length} bytes in {len(parts)} parts is too large to send")
    return b"".join((_LENGTHS.pack(length, len(text)), text, *parts))


class Decoder:
    """Turns a byte stream back into frames, however it was cut."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields every frame that is complete now.

        Raises:
            FrameError: the bytes cannot be the beginning of a frame.
        """
        self._buffer += data
        while len(self._buffer) >= _LENGTHS.size:
            length, header_length = _LENGTHS.unpack_from(self._buffer)
            if not 4 < length <= self._max_frame:
                raise FrameError(f"frame of {length} bytes; expected 5 to {self._max_frame}")
            if header_length > min(MAX_HEADER, length - 4):
                raise FrameError(f"header of {header_length} bytes in a frame of {length}")
            end = 4 + length
            if len(self._buffer) < end:
                return
            with memoryview(self._buffer) as view:
                text = bytes(view[8 : 8 + header_length])
                body = bytes(view[8 + header_length : end])
            del self._buffer[:end]
            yield _parse(text, body)


def number(frame: Frame) -> int:
    """The cell that a frame is about.

    Raises:
        FrameError: none is named.
    """
    found = frame.header.get("id")
    if type(found) is not int:
        raise FrameError(f"a {frame.type[:20]!r} frame of no cell")
    return found


def only_part(frame: Frame) -> bytes:
    """
    Raises:
        FrameError: there is none, or more than one.
    """
    if len(frame.parts) != 1:
        raise FrameError(f"a {frame.type[:20]!r} frame of {len(frame.parts)} parts, expected one")
    return frame.parts[0]


def _parse(text: bytes, body: bytes) -> Frame:
    try:
        header = as_dict(json.loads(text))
    except (ValueError, RecursionError):
        raise FrameError("frame header is not JSON") from None
    if not isinstance(header.get("type"), str):
        raise FrameError("frame header is not an object with a text `type`")
    found = header.pop("parts", None)
    lengths = as_list(found)
    if not isinstance(found, list) or not _lengths_fit(lengths, len(body)):
        raise FrameError(f"frame parts {str(lengths)[:80]} do not add up to {len(body)} bytes")
    parts: list[bytes] = []
    start = 0
    for length in lengths:
        parts.append(body[start : start + length])
        start += length
    return Frame(header, tuple(parts))


def _lengths_fit(lengths: list[Any], total: int) -> bool:
    return (
        len(lengths) <= MAX_PARTS
        and all(type(length) is int and length >= 0 for length in lengths)
        and sum(lengths) == total
    )
