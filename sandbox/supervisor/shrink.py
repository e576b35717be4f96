"""A helper process that makes a PNG of bounded size out of any picture: `--picture - <max pixels>`.

A process of its own, because decoding is where hostile bytes bite: it can crash, hang or run out of
memory and the supervisor lives on.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from .sniff import sniff

HERE = Path(__file__).resolve().parent


def main(source: str, max_pixels: int) -> None:
    """Reads a picture from standard input (`-`), writes PNG to standard output."""
    assert source == "-"
    from PIL import Image  # in the helper only: the supervisor needs no PIL

    from . import pictures

    Image.MAX_IMAGE_PIXELS = 400_000_000
    with Image.open(io.BytesIO(sys.stdin.buffer.read())) as image:
        image.draft("RGB", (8000, 8000))
        shown = pictures.png(image, max_pixels)
    if shown is not None:
        sys.stdout.buffer.write(shown[0])


def fit(data: bytes, max_pixels: int, seconds: float) -> bytes | None:
    """The picture itself where it is PNG or JPEG of allowed size, else a PNG made by the helper;
    None when it is none or takes too long."""
    mime, width, height = sniff(data)
    if mime != "other" and width * height <= max_pixels:
        return data
    if seconds <= 0:
        return None
    command = [sys.executable, "-s", "-P", str(HERE), "--picture", "-", str(max_pixels)]
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if sniff(done.stdout)[0] == "image/png" else None
