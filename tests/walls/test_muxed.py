"""Docker's stream headers: any slicing gives the same pieces; what is no header is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import WireError
from sandbox.muxed import MAX_PIECE_BYTES, Demultiplexer, Piece

names = st.sampled_from(["stdout", "stderr"])
pieces_of_any_size = st.lists(st.tuples(names, st.binary(max_size=300)), max_size=12)


def encode(pieces: list[Piece]) -> bytes:
    return b"".join(
        bytes([1 if name == "stdout" else 2, 0, 0, 0]) + len(data).to_bytes(4, "big") + data
        for name, data in pieces
    )


def joined(pieces: list[Piece]) -> dict[str, bytes]:
    return {
        name: b"".join(data for which, data in pieces if which == name)
        for name in ("stdout", "stderr")
    }


@given(pieces_of_any_size, st.lists(st.integers(0, 4000), max_size=30))
def test_any_slicing(pieces: list[Piece], cuts: list[int]) -> None:
    raw = encode(pieces)
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    parser = Demultiplexer()
    found = [piece for a, b in pairwise(edges) for piece in parser.feed(raw[a:b])]
    assert joined(found) == joined(pieces)
    assert parser.at_boundary


def test_a_cut_stream_is_noticed() -> None:
    parser = Demultiplexer()
    assert parser.feed(encode([("stdout", b"abc")])[:-1]) == [("stdout", b"ab")]
    assert not parser.at_boundary


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\n",
        b"\x03\0\0\0\0\0\0\1x",
        b"\x01\0\1\0\0\0\0\1x",
        b"\x01\0\0\0" + (MAX_PIECE_BYTES + 1).to_bytes(4, "big"),
    ],
)
def test_what_is_no_header_is_refused(raw: bytes) -> None:
    with pytest.raises(WireError, match="header"):
        Demultiplexer().feed(raw)


@given(st.binary(max_size=200))
def test_nothing_but_wire_errors(raw: bytes) -> None:
    parser = Demultiplexer()
    try:
        found = parser.feed(raw)
    except WireError:
        return
    assert sum(len(data) for _, data in found) <= len(raw)
