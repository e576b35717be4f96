"""Pictures from a hostile box: whatever their bytes, the host has them decoded or refused soon, and
what it keeps holds pixels and nothing else.

Each is a file that costs a plain decoder seconds to minutes, or gigabytes. The bounds on CPU time
are those of safety, many times what is expected, not measurements.
"""

from __future__ import annotations

import io
import struct
import time
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from sandbox.decoding import MAX_SCAN_PIXELS, MAX_SCANS, decode
from sandbox.outputs import Display
from sandbox.plain import plain
from sandbox.receipt import Receipt
from sandbox.spec import Limits
from sandbox.supervisor.sniff import sniff

PIXELS = 16_000_000
SAFE_CPU_SECONDS = 20.0


def encoded(form: str, width: int = 16, height: int = 16, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((width, height), 90).convert("RGB").save(buffer, form, **options)
    return buffer.getvalue()


def chunk(kind: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(
    *middle: bytes, width: int = 8, height: int = 8, kind: tuple[int, ...] = (8, 2, 0, 0, 0)
) -> bytes:
    """A PNG of these chunks between header and end; RGB without interlacing unless said."""
    header = chunk(b"IHDR", struct.pack(">II5B", width, height, *kind))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(middle) + chunk(b"IEND")


def rows(width: int = 8, height: int = 8, fill: int = 0) -> bytes:
    """Packed RGB pixels of one value."""
    return chunk(b"IDAT", zlib.compress((b"\0" + bytes([fill]) * 3 * width) * height, 6))


def empty_blocks(size: int) -> bytes:
    """A deflate stream of blocks that hold nothing but a Huffman table each: 11 bytes, 1.3 µs."""
    bits = [0, 0, 1]  # not the last; dynamic
    bits += [0] * 10 + [0, 1, 1, 1]  # 257 literal codes, 1 distance code, 18 code lengths
    order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1]
    for symbol in order:
        bits += [int(symbol in (1, 18)), 0, 0]
    for zeros in (138, 118):  # 256 literals without a code
        bits += [1, *((zeros - 11) >> n & 1 for n in range(7))]
    bits += [0, 0, 0]  # the end of a block has a code, one distance has; then this end
    block = bits * 8
    packed = bytes(sum(block[i + n] << n for n in range(8)) for i in range(0, len(block), 8))
    return b"\x78\x9c" + packed * (size // len(packed))


def jpeg_parts() -> tuple[bytes, bytes, bytes]:
    """Start, segments and scan of a small JPEG, without its end."""
    data = encoded("JPEG")
    scan = data.index(b"\xff\xda")
    return data[:2], data[2:scan], data[scan:-2]


def segment(marker: int, body: bytes) -> bytes:
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(body) + 2) + body


def jpeg(before: bytes = b"", between: bytes = b"", after: bytes = b"") -> bytes:
    start, segments, scan = jpeg_parts()
    return start + before + segments + between + scan + b"\xff\xd9" + after


def many_scans(count: int, width: int = 16, height: int = 16) -> bytes:
    data = encoded("JPEG", width, height, progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * count + b"\xff\xd9"


def other_frame(marker: int) -> bytes:
    return jpeg().replace(b"\xff\xc0", b"\xff" + bytes([marker]), 1)


TABLE_BOMB = chunk(b"iCCP", b"p\0\0" + zlib.compress(bytes(1 << 20), 9))
TEXT_BOMB = chunk(b"zTXt", b"t\0\0" + zlib.compress(bytes(1 << 26), 9))
EXIF = segment(0xE1, b"Exif\0\0" + bytes(60_000))

REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "neither PNG nor JPEG"),
    "text": (lambda: b"<svg/>", "neither PNG nor JPEG"),
    "GIF": (lambda: encoded("GIF"), "neither PNG nor JPEG"),
    "TIFF": (lambda: encoded("TIFF"), "neither PNG nor JPEG"),
    "PNG header cut off": (lambda: png(rows())[:30], "without a header"),
    "PNG 16k x 16k": (lambda: png(rows(), width=16_384, height=16_384), "16384x16384 pixels"),
    "PNG of 2^31 columns": (lambda: png(rows(), width=2**31, height=1), "2147483648x1 pixels"),
    "PNG without pixels": (lambda: png(rows(), width=0), "0x8 pixels"),
    "PNG of depth 3": (lambda: png(rows(), kind=(3, 2, 0, 0, 0)), "makes no sense"),
    "PNG of colour 5": (lambda: png(rows(), kind=(8, 5, 0, 0, 0)), "makes no sense"),
    "PNG interlaced 7": (lambda: png(rows(), kind=(8, 2, 0, 0, 7)), "makes no sense"),
    "PNG that claims more": (lambda: png(rows(), width=4000, height=4000), "cannot be decoded"),
    "PNG of filter 9": (
        lambda: png(chunk(b"IDAT", zlib.compress((b"\x09" + bytes(24)) * 8))),
        "cannot be decoded",
    ),
    "PNG without IDAT": (lambda: png(), "cannot be decoded"),
    "PNG palette of nothing": (
        lambda: png(chunk(b"IDAT", zlib.compress(bytes(72))), kind=(8, 3, 0, 0, 0)),
        "without its palette",
    ),
    "PNG cut off": (lambda: png(rows(500, 500), width=500, height=500)[:60], "cannot be decoded"),
    "PNG of a million chunks": (lambda: png(chunk(b"IDAT") * 1_000_000), "65536 chunks"),
    "PNG of private chunks": (lambda: png(chunk(b"abCd") * 300_000, rows()), "65536 chunks"),
    "PNG of empty deflate blocks": (
        lambda: png(chunk(b"IDAT", empty_blocks(40_000_000)), width=4000, height=4000),
        "decoded|unpack",
    ),
    "PNG packed larger than unpacked": (
        lambda: png(chunk(b"IDAT", empty_blocks(40_000_000)), width=1000, height=1000),
        "larger packed than unpacked",
    ),
    "JPEG without pixels": (lambda: b"\xff\xd8\xff" + bytes(50), "without pixels"),
    "JPEG of fill bytes": (lambda: b"\xff\xd8" + b"\xff" * 30_000_000, "without pixels"),
    "JPEG of stuffed zeros": (lambda: b"\xff\xd8\xff" + b"\0\xff" * 15_000_000, "without pixels"),
    "JPEG of junk": (lambda: b"\xff\xd8\xff" + b"junk" * 8_000_000, "without pixels"),
    "JPEG of empty segments": (lambda: jpeg(segment(0xE5, b"") * 100_000), "4096 segments"),
    "JPEG of scans": (lambda: many_scans(MAX_SCANS + 1), "more than 100 scans"),
    "JPEG of scans, large": (lambda: many_scans(60, 2000, 2000), "more than 50 scans"),
    "JPEG of two sizes": (
        lambda: jpeg(between=segment(0xC0, b"\x08\0\x10\0\x10\x01\x01\x11\0")),
        "two sizes",
    ),
    "JPEG whose pixels come first": (
        lambda: b"\xff\xd8" + segment(0xDA, b"\x01\x01\0\0\x3f\0") + b"\xff\xd9",
        "before its size",
    ),
    "JPEG cut off": (lambda: encoded("JPEG", 300, 300)[:9000], "cannot be decoded"),
    "JPEG cut off in a segment": (lambda: jpeg()[:30], "without pixels"),
    "JPEG 65500 x 65500": (
        lambda: jpeg().replace(b"\x08\0\x10\0\x10\x03", b"\x08\xff\xdc\xff\xdc\x03", 1),
        "65500x65500 pixels",
    ),
    "JPEG, arithmetic": (lambda: other_frame(0xC9), "not in use"),
    "JPEG, lossless": (lambda: other_frame(0xC3), "not in use"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    make, words = REFUSED[name]
    data = make()
    before = time.thread_time()
    with pytest.raises(ValueError, match=words) as caught:
        decode(data, PIXELS)
    assert time.thread_time() - before < SAFE_CPU_SECONDS
    assert "\n" not in str(caught.value)
    assert not str(caught.value).endswith(".")


TAKEN: dict[str, tuple[Callable[[], bytes], int]] = {
    "PNG with 2000 profiles of 1 MB": (lambda: png(TABLE_BOMB * 2000, rows()), 8),
    "PNG with 1000 texts of 64 MB": (lambda: png(TEXT_BOMB * 1000, rows()), 8),
    "PNG with texts after its pixels": (lambda: png(rows(), TEXT_BOMB * 1000), 8),
    "PNG with EXIF of 50 MB": (lambda: png(chunk(b"eXIf", bytes(50_000_000)), rows()), 8),
    "PNG with more pixels than its size": (
        lambda: png(chunk(b"IDAT", zlib.compress(bytes(200_000_000), 9)[:2000])),
        8,
    ),
    "PNG with 4 billion frames": (
        lambda: png(chunk(b"acTL", b"\x7f\xff\xff\xff\0\0\0\0"), rows(), chunk(b"fdAT", bytes(9))),
        8,
    ),
    "PNG with a wrong checksum of its pixels": (lambda: png(rows()[:-4] + bytes(4)), 8),
    "PNG with bytes after its end": (lambda: png(rows()) + bytes(50_000_000), 8),
    "PNG without an end": (lambda: png(rows())[:-12], 8),
    "PNG in 200 pieces": (
        lambda: png(*(chunk(b"IDAT", bytes([b])) for b in zlib.compress(b"\0" * 200))),
        8,
    ),
    "JPEG with EXIF of 30 MB": (lambda: jpeg(EXIF * 500), 16),
    "JPEG with a second picture": (lambda: jpeg(after=jpeg()), 16),
    "JPEG with bytes after its end": (lambda: jpeg(after=bytes(50_000_000)), 16),
    "JPEG with fill bytes": (lambda: jpeg(b"\xff" * 1_000_000), 16),
    "JPEG with junk between its segments": (lambda: jpeg(between=b"junk" * 1_000_000), 16),
    "JPEG with a comment in the middle": (lambda: jpeg(between=segment(0xFE, b"gold 42")), 16),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_down_to_its_pixels(name: str) -> None:
    make, side = TAKEN[name]
    data = make()
    before = time.thread_time()
    display, _ = decode(data, PIXELS)
    assert time.thread_time() - before < SAFE_CPU_SECONDS
    assert (display.width, display.height) == (side, side)
    assert len(display.data) < 3000
    assert b"gold" not in display.data
    assert plain(display.data).data is display.data
    with Image.open(io.BytesIO(display.data)) as image:
        image.load()
        assert image.info.keys() <= {"jfif", "jfif_version", "jfif_unit", "jfif_density", "dpi"}
        assert getattr(image, "n_frames", 1) == 1


@pytest.mark.parametrize(
    ("form", "mode"),
    [
        *(("PNG", mode) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
        *(("JPEG", mode) for mode in ("L", "RGB", "CMYK")),
    ],
)
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (300, 200)])
def test_an_honest_picture_passes_byte_for_byte(
    form: str, mode: str, size: tuple[int, int]
) -> None:
    values = np.random.default_rng(5).integers(0, 256, (*size[::-1], 4), np.uint8)
    image = Image.fromarray(values, "RGBA")
    made = Image.new(mode, size, 700) if mode == "I;16" else _in_mode(image, mode)
    buffer = io.BytesIO()
    made.save(buffer, form)
    assert plain(buffer.getvalue()).data == buffer.getvalue()
    display, _ = decode(buffer.getvalue(), PIXELS)
    assert display.data == buffer.getvalue()
    assert (display.width, display.height) == size


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    return image.convert("RGB").convert(mode) if mode in ("CMYK", "1", "P") else image.convert(mode)


@pytest.mark.parametrize("interlaced", [False, True])
def test_large_honest_pictures_pass(interlaced: bool) -> None:
    """The limits are above what any encoder makes: noise at full size, progressive, interlaced."""
    noise = np.random.default_rng(1).integers(0, 256, (1500, 1400, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "PNG", compress_level=1)
    data = buffer.getvalue()
    if interlaced:
        raw = b"".join(b"\0" + noise[y, x::dx].tobytes() for y, x, dx in _adam7(noise.shape))
        data = png(
            chunk(b"IDAT", zlib.compress(raw, 1)), width=1400, height=1500, kind=(8, 2, 0, 0, 1)
        )
    display, digest = decode(data, PIXELS)
    assert (display.width, display.height) == (1400, 1500)
    buffer = io.BytesIO()
    Image.fromarray(noise).convert("RGBA").save(buffer, "PNG", compress_level=1)
    assert decode(buffer.getvalue(), PIXELS)[1] == digest
    import cv2

    for progressive in (0, 1):
        options = [cv2.IMWRITE_JPEG_PROGRESSIVE, progressive, cv2.IMWRITE_JPEG_QUALITY, 100]
        made = cv2.imencode(".jpg", noise, options)[1].tobytes()
        assert decode(made, PIXELS)[0].data == made


def _adam7(shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """(row, first column, step) in the order in which an interlaced PNG holds its rows."""
    passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4)]
    passes += [(2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]
    return [(y, x, dx) for y0, dy, x, dx in passes for y in range(y0, shape[0], dy)]


def test_the_largest_picture_may_have_the_scans_that_encoders_make() -> None:
    assert MAX_SCAN_PIXELS // Limits().picture_pixels >= 10


def test_one_picture_shown_five_thousand_times_is_decoded_once() -> None:
    bad = encoded("JPEG", 1000, 1000)[:-3000]
    good = encoded("PNG", 500, 500)
    receipt = Receipt(Limits(pictures=2))
    shown = [{"type": "picture", "digest": name} for name in ("bad", "good") * 2500]
    receipt.take({"outputs": shown, "pictures": ["bad", "good"]}, (bad, good))
    notes: list[str] = []
    before = time.thread_time()
    outputs, dropped = receipt.read(notes)
    assert time.thread_time() - before < SAFE_CPU_SECONDS
    assert [o.data for o in outputs if isinstance(o, Display)] == [good]
    assert notes == ["A picture is not shown: it cannot be decoded (OSError)."]
    assert dropped.pictures == 0


def test_what_does_not_fit_the_time_of_one_cell_is_said() -> None:
    receipt = Receipt(Limits(), cpu_seconds=0.0)
    receipt.take(
        {"outputs": [{"type": "picture", "digest": "a"}], "pictures": ["a"]}, (encoded("PNG"),)
    )
    notes: list[str] = []
    assert receipt.read(notes)[0] == ()
    assert notes == ["A picture is not shown: the others took too long to decode."]


def photograph(mode: str, **options: object) -> bytes:
    """A JPEG with all the metadata that a camera and an editor leave."""
    exif = Image.Exif()
    exif[0x010E] = "told nobody"
    buffer = io.BytesIO()
    image = Image.effect_noise((70, 50), 60).convert("RGB")
    image.paste((200, 30, 90), (5, 5, 40, 30))
    image.convert(mode).save(
        buffer, "JPEG", exif=exif, xmp=b"<x/>", comment=b"c", icc_profile=bytes(70_000), **options
    )
    return buffer.getvalue()


def ycck() -> bytes:
    """CMYK as Photoshop saves it: Adobe's header says that the colours are transformed."""
    data = photograph("CMYK")
    place = data.index(b"Adobe\0")
    assert data[place + 11] == 0
    return data[: place + 11] + b"\2" + data[place + 12 :]


@pytest.mark.parametrize(
    "make",
    [
        lambda: photograph("RGB"),
        lambda: photograph("L"),
        lambda: photograph("CMYK"),
        ycck,
        lambda: photograph("RGB", keep_rgb=True),
        lambda: photograph("RGB", progressive=True),
        lambda: photograph("RGB", restart_marker_blocks=2),
        lambda: photograph("RGB", subsampling=2, quality=10),
    ],
    ids=["RGB", "grey", "CMYK", "YCCK", "stored as RGB", "progressive", "restarts", "subsampled"],
)
def test_pixels_are_the_same_without_what_was_left_out(make: Callable[[], bytes]) -> None:
    data = make()
    display, _ = decode(data, PIXELS)
    assert len(display.data) < len(data) - 70_000
    with (
        Image.open(io.BytesIO(data)) as original,
        Image.open(io.BytesIO(display.data)) as taken,
    ):
        assert taken.mode == original.mode
        np.testing.assert_array_equal(np.asarray(taken), np.asarray(original))
        assert not taken.getexif()


@given(st.binary(max_size=200), st.integers(0, 600), st.sampled_from(["PNG", "JPEG"]))
def test_a_mutated_picture_is_taken_or_refused(noise: bytes, place: int, form: str) -> None:
    data = encoded(form)
    mutated = data[:place] + noise + data[place + len(noise) :]
    try:
        display, _ = decode(mutated, 10_000)
    except ValueError:
        return
    assert 0 < display.width * display.height <= 10_000


@pytest.mark.parametrize(
    "name", ["JPEG of scans", "JPEG of scans, large", "JPEG, arithmetic", "JPEG, lossless"]
)
def test_the_box_itself_converts_a_whole_jpeg_that_the_host_would_refuse(name: str) -> None:
    """There the helper that makes a plain PNG of it has a time limit."""
    make, _ = REFUSED[name]
    assert sniff(make()) == ("other", 0, 0)


def test_metadata_does_not_leave_the_box() -> None:
    info = PngInfo()
    info.add_text("answer", "-37,112")
    data = encoded("PNG", pnginfo=info, dpi=(300, 300))
    display, _ = decode(data, PIXELS)
    assert b"-37,112" in data
    assert b"-37,112" not in display.data
