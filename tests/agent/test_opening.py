"""Hostile picture files from a data set: refused in one line or opened, soon, and nothing else."""

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
from PIL import Image as Pillow

from agent import picturefile
from agent.errors import InputProblem
from agent.opening import open_picture
from agent.pictures import prepare
from benchmarks.sample import Picture
from tests.sandbox.test_decoding import chunk, empty_blocks, many_scans, png, segment

SAFE_CPU_SECONDS = 60.0


def saved(form: str, mode: str = "RGB", **options: object) -> bytes:
    buffer = io.BytesIO()
    Pillow.effect_noise((40, 30), 80).convert("RGB").convert(mode).save(buffer, form, **options)
    return buffer.getvalue()


def bmp(width: int, height: int) -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + info


def tiff(*entries: tuple[int, int, int, int], after: int = 0) -> bytes:
    """A TIFF of one directory; `after` is where the next is said to be."""
    made = b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries))
    return made + b"".join(struct.pack("<HHII", *e) for e in entries) + struct.pack("<I", after)


def large_strips() -> bytes:
    """8×8 pixels in one strip of 4 GB."""
    sizes = [(256, 4, 1, 8), (257, 4, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    return tiff(*sizes, (273, 4, 1, 100), (277, 3, 1, 1), (278, 4, 1, 8), (279, 4, 1, 2**32 - 1))


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "an empty file; fetch it again"),
    "text": (lambda: b"hello world", "11 bytes that begin with b'hello wo'; convert it"),
    "SVG": (lambda: b"<?xml version='1.0'?>\n<svg/>", "an SVG drawing; render it to PNG"),
    "PDF": (lambda: b"%PDF-1.7", "a PDF document; render the page to PNG"),
    "PostScript": (
        lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n",
        "a PostScript drawing",
    ),
    "HEIC": (lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "a HEIC picture, which cannot be read"),
    "PSD": (lambda: b"8BPS\0\1" + bytes(30), "a Photoshop document"),
    "a web page": (lambda: b"<!DOCTYPE html><html>", "a web page; fetch the picture itself"),
    "a git-lfs pointer": (lambda: b"version https://git-lfs", "23 bytes that begin with"),
    "XBM, which runs as C": (
        lambda: b"#define x_width 9\n#define x_height 9\nstatic char x_bits[] = {0};",
        "bytes that begin with",
    ),
    "GIF without pixels": (lambda: b"GIF89a" + bytes(7) + b";", "bytes that begin"),
    "GIF of 65535²": (
        lambda: b"GIF89a\xff\xff\xff\xff\0\0\0," + b"\0\0\0\0\xff\xff\xff\xff\0\2\2\x44\1\0;",
        "expected at most 89478485 pixels",
    ),
    "BMP of 60000²": (lambda: bmp(60_000, 60_000), "shrink it"),
    "BMP of 40000×3000": (lambda: bmp(40_000, 3000), "found 40000×3000; shrink the picture"),
    "BMP of -5×9": (lambda: bmp(-5, 9), "shrink it"),
    "PPM of 10^16": (lambda: b"P6 99999999 99999999 255\n", "shrink it"),
    "PPM cut off": (lambda: b"P6 100 100 255\n123", "a damaged one (image file is truncated"),
    "PNG of 50000²": (lambda: png(width=50_000, height=50_000), "found 50000×50000"),
    "PNG of empty deflate blocks": (
        lambda: png(chunk(b"IDAT", empty_blocks(5_000_000)), width=4000, height=4000),
        "a damaged one",
    ),
    "JPEG of scans": (lambda: many_scans(120), "more than 100 scans"),
    "TIFF of a strip of 4 GB": (large_strips, "a damaged one"),
    "TIFF of nothing": (lambda: tiff(), "14 bytes that begin with"),
    "TIFF of a tag of 4 GB": (lambda: tiff((270, 2, 2**32 - 1, 0)), "26 bytes that begin with"),
    **{
        f"{form} cut off": (lambda form=form: saved(form)[:400], "")
        for form in ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "JPEG2000", "ICO", "PPM")
    },
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_what_is_refused(name: str) -> None:
    make, words = REFUSED[name]
    before = time.thread_time()
    with pytest.raises(InputProblem) as caught:
        open_picture(make(), "image_1.png")
    line = str(caught.value)
    assert line.startswith("image_1.png: expected ")
    assert words in line
    assert "\n" not in line
    assert time.thread_time() - before < SAFE_CPU_SECONDS


def gif(frame_count: int) -> bytes:
    buffer = io.BytesIO()
    Pillow.new("P", (4, 4), 1).save(buffer, "GIF")
    data = buffer.getvalue()
    start = data.index(b",", 13)
    return data[:start] + data[start:-1] * frame_count + b";"


def many_pages(count: int) -> bytes:
    """A TIFF whose later pages are directories of no entries."""
    data = bytearray(saved("TIFF"))
    at = struct.unpack_from("<I", data, 4)[0]
    end = at + 2 + 12 * struct.unpack_from("<H", data, at)[0]
    struct.pack_into("<I", data, end, len(data))
    for _ in range(count - 1):
        data += b"\0\0" + struct.pack("<I", len(data) + 6)
    return bytes(data[:-4]) + bytes(4)


def own_next(data: bytes) -> bytes:
    """A TIFF whose first directory names itself as the next one."""
    made = bytearray(data)
    at = struct.unpack_from("<I", made, 4)[0]
    struct.pack_into("<I", made, at + 2 + 12 * struct.unpack_from("<H", made, at)[0], at)
    return bytes(made)


def segments(data: bytes, more: bytes) -> bytes:
    return data[:2] + more + data[2:]


TURN_6 = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
OPENED: dict[str, tuple[Callable[[], bytes], int, int]] = {
    "GIF of 5000 frames": (lambda: gif(5000), 1001, 1),
    "GIF of 3 frames": (lambda: gif(3), 3, 1),
    "GIF without an end": (lambda: gif(3)[:-1], 3, 1),
    "TIFF of 40000 pages": (lambda: many_pages(40_000), 1001, 1),
    "TIFF of 3 pages": (lambda: many_pages(3), 3, 1),
    "TIFF whose next page is itself": (lambda: own_next(saved("TIFF")), 1, 1),
    "PNG of 4 billion frames": (
        lambda: png_with(chunk(b"acTL", b"\x7f\xff\xff\xff\0\0\0\0")),
        1001,
        1,
    ),
    "PNG of no frames": (lambda: png_with(chunk(b"acTL", bytes(8))), 1, 1),
    "PNG with EXIF": (lambda: png_with(chunk(b"eXIf", TURN_6[6:])), 1, 6),
    "JPEG with EXIF": (lambda: segments(saved("JPEG"), segment(0xE1, TURN_6)), 1, 6),
    "JPEG with 30 MB of EXIF": (
        lambda: segments(saved("JPEG"), segment(0xE1, b"Exif\0\0" + bytes(60_000)) * 500),
        1,
        1,
    ),
    "JPEG with EXIF after 30 MB of it": (
        lambda: segments(
            saved("JPEG"),
            segment(0xE1, b"Exif\0\0" + bytes(60_000)) * 500 + segment(0xE1, TURN_6),
        ),
        1,
        6,
    ),
    "JPEG with a turn of 9": (
        lambda: segments(saved("JPEG"), segment(0xE1, TURN_6.replace(b"\0\6", b"\0\x09"))),
        1,
        1,
    ),
    "JPEG with a turn of two values": (
        lambda: segments(saved("JPEG"), segment(0xE1, TURN_6.replace(b"\0\0\0\1", b"\0\0\0\2", 1))),
        1,
        1,
    ),
    "AVIF": (lambda: saved("AVIF"), 1, 1),
    "ICO": (lambda: saved("ICO"), 1, 1),
}


def png_with(*more: bytes) -> bytes:
    return png(*more, chunk(b"IDAT", zlib.compress(bytes(25 * 8))))


@pytest.mark.parametrize("name", OPENED)
def test_what_is_opened_and_what_it_says_of_itself(name: str) -> None:
    make, count, turn = OPENED[name]
    data = make()
    before = time.thread_time()
    opened = open_picture(data, "image_1.x")
    assert (opened.frames, opened.turn) == (count, turn)
    assert opened.pixels.size == opened.pixels.copy().size
    assert time.thread_time() - before < SAFE_CPU_SECONDS


def test_frames_are_told() -> None:
    assert "first of more than 1000 frames" in prepare(Picture("a.gif", gif(5000)), 10_000).text


BIG = struct.pack("<2sHHHQ", b"II", 43, 8, 0, 16) + struct.pack(
    "<QHHQHHIQ", 1, 274, 3, 1, 6, 0, 0, 0
)


def test_bigtiff_is_taken_apart_too() -> None:
    assert picturefile.orientation(BIG) == 6
    assert picturefile.frames(BIG) == 1


SEEDS = [
    *(saved(f) for f in ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "PPM", "AVIF", "JPEG2000")),
    saved("TIFF", "L", compression="tiff_lzw"),
    saved("TIFF", "1", compression="packbits"),
    saved("TIFF", "F", compression="tiff_deflate"),
    saved("PNG", "P"),
    saved("JPEG", "CMYK"),
    segments(saved("JPEG"), segment(0xE1, TURN_6)),
    many_pages(3),
    gif(3),
]


@given(st.sampled_from(SEEDS), st.integers(0, 1500), st.binary(max_size=12), st.booleans())
def test_a_mutated_file_is_opened_or_refused(
    seed: bytes, place: int, noise: bytes, cut: bool
) -> None:
    data = seed[:place] + noise + (b"" if cut else seed[place + len(noise) :])
    try:
        made = prepare(Picture("a.x", data), 10_000)
    except InputProblem:
        return
    assert made.image.width * made.image.height <= 10_000


@given(st.binary(max_size=300))
def test_what_a_file_says_of_itself_never_raises(noise: bytes) -> None:
    starts = [b"", b"II*\0", b"MM\0+", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"]
    for start in (*starts, b"RIFF\0\0\0\0WEBP"):
        data = start + noise
        assert 1 <= picturefile.orientation(data, noise) <= 8
        assert 1 <= picturefile.frames(data) <= picturefile.MOST_FRAMES + 1
        picturefile.has_foreign_profile(data, noise)
        assert all(picturefile.foreign(data))


def test_large_grey_values_are_stretched_within_bounded_memory() -> None:
    import tracemalloc

    values = np.zeros((4000, 3000), np.uint16)
    values[:, 1500:] = 40_000
    buffer = io.BytesIO()
    Pillow.fromarray(values).save(buffer, "PNG", compress_level=1)
    tracemalloc.start()
    made = prepare(Picture("a.png", buffer.getvalue()), 1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * values.size  # float64 copies of everything would be 24 bytes a value
    assert Pillow.open(io.BytesIO(made.image.data)).getextrema() == (0, 255)
