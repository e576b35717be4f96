"""The plumbing that both isolating walls share: bytes out, bytes in, and what stderr said last."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field

from sandbox.errors import BoxLost

CHUNK_BYTES = 1 << 18
WRITE_SECONDS = 60.0
"""How long a box may leave its input unread before it counts as lost."""


class Tail:
    """The last bytes of a stream that may be endless."""

    def __init__(self, limit: int = 8192) -> None:
        self._limit = limit
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self._data += data[-self._limit :]
        del self._data[: -self._limit]

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace").strip()


@dataclass(frozen=True, slots=True)
class BoxStream:
    """A pair of asyncio streams whose every failure is `BoxLost` or the end of the stream."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    errors: Tail = field(default_factory=Tail)

    @classmethod
    async def over_socket(cls, sock: socket.socket) -> BoxStream:
        """Takes the socket over; it is closed with the stream."""
        unix = sock.family == socket.AF_UNIX
        connect = asyncio.open_unix_connection if unix else asyncio.open_connection
        reader, writer = await connect(sock=sock, limit=CHUNK_BYTES)
        return cls(reader, writer)

    async def read(self) -> bytes:
        """The next bytes; empty at the end, whether it was orderly or not."""
        try:
            data = await self.reader.read(CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:
            # An engine keeps its half open after the box is gone; writes must fail at once.
            self.close()
        return data

    async def write(self, data: bytes) -> None:
        """Raises `BoxLost` when nobody reads at the other end any more."""
        try:
            if self.writer.transport.is_closing():
                raise BrokenPipeError
            async with asyncio.timeout(WRITE_SECONDS):
                self.writer.write(data)
                await self.writer.drain()
        except TimeoutError as error:
            raise BoxLost(f"the box read nothing for {WRITE_SECONDS:.0f} s") from error
        except (OSError, RuntimeError) as error:
            raise BoxLost("the box's stream has ended") from error

    def close(self) -> None:
        """Closes both directions at once; what was not sent is lost."""
        if not self.writer.transport.is_closing():
            self.writer.transport.abort()
