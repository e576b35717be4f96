"""Frames: whatever is sent arrives, however it is cut; whatever else arrives is refused."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.supervisor.wire import (
    MAX_PARTS,
    Decoder,
    Frame,
    FrameError,
    encode,
    number,
    only_part,
)

headers = st.dictionaries(
    st.text(max_size=8).filter(lambda key: key not in ("type", "parts")),
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.lists(st.text(max_size=5)),
    max_size=4,
)


def frame(kind: str, header: dict[str, object], parts: list[bytes]) -> Frame:
    return Frame({"type": kind, **header}, tuple(parts))


frames = st.builds(
    frame, st.text(max_size=10), headers, st.lists(st.binary(max_size=300), max_size=4)
)


@given(st.lists(frames, max_size=5), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_round_trip_however_the_stream_is_cut(sent: list[Frame], cuts: list[int]) -> None:
    stream = b"".join(encode(frame.header, frame.parts) for frame in sent)
    decoder = Decoder()
    received: list[Frame] = []
    position = 0
    while position < len(stream):
        size = cuts[position % len(cuts)]
        received += decoder.feed(stream[position : position + size])
        position += size
    assert received == sent


@given(st.binary(max_size=200))
def test_noise_is_refused_or_incomplete(noise: bytes) -> None:
    try:
        received = list(Decoder().feed(noise))
    except FrameError:
        return
    assert all(isinstance(frame.type, str) for frame in received)


def raw(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">II", 4 + len(text) + len(body), len(text)) + text + body


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\xff\xff\xff\xff\x00\x00\x00\x02",
        struct.pack(">II", 10, 7),
        raw(b"{not json"),
        raw(b"[" * 100_000),
        raw([1, 2]),
        raw({"parts": []}),
        raw({"type": 5, "parts": []}),
        raw({"type": "x"}),
        raw({"type": "x", "parts": "ab"}),
        raw({"type": "x", "parts": [1]}),
        raw({"type": "x", "parts": [-1, 2]}, b"a"),
        raw({"type": "x", "parts": [True]}, b"a"),
        raw({"type": "x", "parts": [1.0]}, b"a"),
        raw({"type": "x", "parts": [0] * (MAX_PARTS + 1)}),
        raw({"type": "x", "parts": []}, b"left over"),
    ],
    ids=lambda data: repr(data[:24]),
)
def test_malformed_frames_are_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        list(Decoder().feed(data))


def test_a_long_frame_is_refused_before_it_is_buffered() -> None:
    decoder = Decoder(max_frame=1000)
    with pytest.raises(FrameError, match="1001 bytes"):
        list(decoder.feed(struct.pack(">II", 1001, 10)))


@pytest.mark.parametrize("found", [None, "1", 1.0, True, [1]])
def test_a_frame_that_must_name_a_cell(found: object) -> None:
    assert number(Frame({"type": "kill", "id": 7})) == 7
    with pytest.raises(FrameError, match="of no cell"):
        number(Frame({"type": "kill", "id": found}))


def test_a_frame_that_must_have_one_part() -> None:
    assert only_part(Frame({"type": "run"}, (b"x",))) == b"x"
    for parts in ((), (b"x", b"y")):
        with pytest.raises(FrameError, match="expected one"):
            only_part(Frame({"type": "run"}, parts))


def test_what_the_other_side_would_refuse_is_not_sent() -> None:
    with pytest.raises(FrameError):
        encode({"type": "x"}, [b""] * (MAX_PARTS + 1))
    with pytest.raises(FrameError):
        encode({"type": "x", "text": "y" * 9_000_000})
