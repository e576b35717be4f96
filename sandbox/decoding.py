"""Decodes what a box sends as pictures, in bounded time, whatever its bytes are.

A thread that decodes cannot be stopped, so nothing is decoded that could take long: only PNG and
the usual JPEGs, reduced to their pixels (`sandbox.plain`), within limits on all that costs time:
pixels, passes over them, bytes, and for a large PNG the inflating itself, tried first in small
steps under a limit of CPU time. The worst that fits costs about two seconds.
"""

from __future__ import annotations

import hashlib
import io
import time
import zlib
from collections.abc import Iterator

from PIL import Image

from sandbox.outputs import Display
from sandbox.plain import PNG, Plain, plain

MAX_SCANS = 100
"""Of a progressive JPEG. Cameras and encoders make about ten."""
MAX_SCAN_PIXELS = 200_000_000
"""Scans times pixels of a JPEG: each scan is a pass over all pixels, however few bytes it has."""
MAX_JPEG_BYTES = 32 * 1024 * 1024
"""About 50 ns of decoding each."""
USUAL_FRAMES = (0xC0, 0xC1, 0xC2)
SMALL_PNG = 1 << 20
"""Packed bytes that cannot take long to inflate: 0.2 s at worst."""
INFLATE_SECONDS = 1.5
"""CPU time; sixteen million pixels of noise take 0.2 s."""
_STEP = 1 << 16


def decode(data: bytes, max_pixels: int) -> tuple[Display, bytes]:
    """A picture, reduced to its pixels, and the digest of these.

    Raises:
        ValueError: neither PNG nor JPEG, damaged, larger than allowed, or too costly to decode.
    """
    found = plain(data)
    width, height = found.width, found.height
    if not 0 < width * height <= max_pixels:
        raise ValueError(f"{width}x{height} pixels, allowed are 1 to {max_pixels}")
    check_cost(found)
    try:
        form = "PNG" if found.mime == "image/png" else "JPEG"
        with Image.open(io.BytesIO(found.data), formats=(form,)) as image:
            if image.size != (width, height):
                raise ValueError("two sizes")
            pixels = image.convert("RGBA")
    except (OSError, SyntaxError, Image.DecompressionBombError, MemoryError) as error:
        raise ValueError(f"it cannot be decoded ({type(error).__name__})") from None
    digest = hashlib.sha256(f"{width}x{height}".encode() + pixels.tobytes()).digest()
    return Display(found.mime, found.data, width, height), digest


def check_cost(found: Plain, patience: int = 1) -> None:
    """Whether it can be decoded in a couple of seconds; `patience` times as many where said.

    Raises:
        ValueError: it cannot, or it is broken.
    """
    if found.mime == "image/jpeg":
        _check_scans(found, patience)
    elif found.packed_bytes > SMALL_PNG:
        _check_inflating(found, patience)


def _check_scans(found: Plain, patience: int) -> None:
    most = min(MAX_SCANS, patience * MAX_SCAN_PIXELS // max(1, found.width * found.height))
    if found.scans > most:
        raise ValueError(f"a JPEG of more than {most} scans")
    if found.frame not in USUAL_FRAMES:
        raise ValueError("a JPEG of a kind that is not in use")
    if len(found.data) > patience * MAX_JPEG_BYTES:
        raise ValueError(f"a JPEG of more than {patience * MAX_JPEG_BYTES} bytes")


def _check_inflating(found: Plain, patience: int) -> None:
    """A few bytes of a packed stream can take as long as a thousand others."""
    if found.packed_bytes > found.raw_bytes * 1.01 + SMALL_PNG:
        raise ValueError("a PNG that is larger packed than unpacked")
    until = time.thread_time() + patience * INFLATE_SECONDS
    inflater = zlib.decompressobj()
    left = found.raw_bytes
    try:
        for step in _pixel_steps(found.data):
            rest = step
            while rest and left > 0 and not inflater.eof:
                if time.thread_time() > until:
                    raise ValueError("a PNG that takes too long to unpack")
                left -= len(inflater.decompress(rest, min(left, SMALL_PNG)))
                rest = inflater.unconsumed_tail
    except zlib.error:
        raise ValueError("it cannot be decoded (broken PNG data)") from None


def _pixel_steps(data: bytes) -> Iterator[bytes]:
    """The contents of the IDAT chunks of a plain PNG, in small pieces."""
    at = len(PNG)
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == b"IDAT":
            for start in range(at + 8, end - 4, _STEP):
                yield data[start : min(start + _STEP, end - 4)]
        at = end
