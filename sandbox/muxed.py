"""Docker's attach stream, taken apart: 8-byte headers, each followed by a piece of one stream.

Pure: bytes in, pieces out. The header is written by the engine, not by the box, yet it is checked
all the same: a proxy that answers in plain text must not be taken for a frame of a billion bytes.
"""

from __future__ import annotations

from typing import Literal

from sandbox.errors import WireError

Piece = tuple[Literal["stdout", "stderr"], bytes]

HEADER_BYTES = 8
MAX_PIECE_BYTES = 1 << 20
"""The engine copies in 32 KiB pieces; far above that the stream is not what we think it is."""


class Demultiplexer:
    """Feeds on bytes in any slicing and gives whole or partial pieces as soon as they are there.

    Holds at most a header: payload is passed on as it arrives, so memory stays flat.
    """

    __slots__ = ("_header", "_left", "_name")

    def __init__(self) -> None:
        self._header = b""
        self._left = 0
        self._name: Literal["stdout", "stderr"] = "stdout"

    @property
    def at_boundary(self) -> bool:
        """True when the stream may end here without having lost anything."""
        return self._left == 0 and not self._header

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces contained in `data`.

        Raises:
            WireError: the stream is not multiplexed as Docker does it.
        """
        pieces: list[Piece] = []
        view = memoryview(data)
        while len(view):
            if self._left:
                pieces.append((self._name, bytes(view[: self._left])))
                taken = min(self._left, len(view))
                self._left -= taken
            else:
                taken = min(HEADER_BYTES - len(self._header), len(view))
                self._header += bytes(view[:taken])
                if len(self._header) == HEADER_BYTES:
                    self._open(self._header)
                    self._header = b""
            view = view[taken:]
        return pieces

    def _open(self, header: bytes) -> None:
        length = int.from_bytes(header[4:], "big")
        if header[0] not in (1, 2) or header[1:4] != b"\0\0\0" or length > MAX_PIECE_BYTES:
            raise WireError(f"the engine's stream has a header that is none: {header.hex()}")
        self._name = "stdout" if header[0] == 1 else "stderr"
        self._left = length
