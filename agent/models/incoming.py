"""What of a server's answer is let in: so many bytes, unpacked, from the address that was asked.

A compressed answer is unpacked here in small pieces and counted, since a few kilobytes can stand
for gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import cast

import httpx2

MOST_BYTES = 64 * 1024 * 1024
"""Of one answer, unpacked. The longest reply of a model has some hundred thousand."""
ACCEPTED = "gzip, deflate"
"""For `Accept-Encoding`."""
_PIECE = 1024 * 1024


class TooLong(Exception):
    """The answer is longer than `MOST_BYTES`, or packed in a way that was not asked for."""


async def bounded(response: httpx2.Response) -> None:
    """A response hook: from here on, reading the body raises `TooLong` where it is."""
    packing = response.headers.pop("content-encoding", "identity").strip().lower()
    source = cast("httpx2.AsyncByteStream", response.stream)
    response.stream = _Bounded(source, packing)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, source: httpx2.AsyncByteStream, packing: str) -> None:
        self._source = source
        self._packing = packing

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for piece in _unpacked(self._source, self._packing):
            total += len(piece)
            if total > MOST_BYTES:
                raise TooLong(f"an answer of more than {MOST_BYTES >> 20} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._source.aclose()


async def _unpacked(source: AsyncIterable[bytes], packing: str) -> AsyncIterator[bytes]:
    if packing in ("identity", ""):
        async for chunk in source:
            yield chunk
        return
    if packing not in ("gzip", "x-gzip", "deflate"):
        raise TooLong(f"an answer packed as {packing[:40]!r}, expected {ACCEPTED} or none")
    unpacker = zlib.decompressobj(32 + zlib.MAX_WBITS)  # the one or the other, by its head
    async for chunk in source:
        rest = chunk
        while rest and not unpacker.eof:
            try:
                yield unpacker.decompress(rest, _PIECE)
            except zlib.error as problem:
                raise httpx2.DecodingError(f"an answer that is no {packing}: {problem}") from None
            rest = unpacker.unconsumed_tail
