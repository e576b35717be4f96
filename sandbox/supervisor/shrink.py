"""A helper process that makes a PNG of bounded size out of any picture: `--picture - <max pixels>`.

A process of its own, because decoding is where hostile bytes bite: it can crash, hang or run out of
memory and the supervisor lives on.
"""

from __future__ import annotations

import contextlib
import io
import resource
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .sniff import sniff

_TOO_LONG = "A picture took too long to convert and is not shown."
_UNREADABLE = "A picture could not be read and is not shown."
MAX_BYTES = 2 << 30
"""Address space of the helper."""
HERE = Path(__file__).resolve().parent


_TOLD = struct.Struct(">IIII")
"""What the helper says before the picture: width, height, frames, whether they are pages."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A picture that can be shown, or why there is none."""

    data: bytes | None
    note: str | None = None


def main(source: str, max_pixels: int) -> None:
    """Reads a picture from standard input (`-`), writes what it is and a PNG to standard output; of
    a photograph a JPEG, which is sooner made."""
    assert source == "-"
    from PIL import Image  # in the helper only: the supervisor needs no PIL

    from . import pictures

    _give_way()
    Image.MAX_IMAGE_PIXELS = 400_000_000
    with Image.open(io.BytesIO(sys.stdin.buffer.read())) as image:
        told = (*image.size, int(getattr(image, "n_frames", 1)), int(image.format == "TIFF"))
        image.draft("RGB", (8000, 8000))
        if image.format == "JPEG" and image.mode in ("RGB", "L"):
            buffer = io.BytesIO()
            pictures.shrink(image, max_pixels).save(buffer, "JPEG", quality=92)
            shown = buffer.getvalue()
        else:
            made = pictures.png(image, max_pixels)
            shown = made[0] if made else b""
    sys.stdout.buffer.write(_TOLD.pack(*told) + shown)


def _give_way() -> None:
    """When memory runs out it goes first, not the kernel with the model's variables."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))


def fit(data: bytes, max_pixels: int, seconds: float) -> Fitted:
    """The picture itself where it is PNG or JPEG of allowed size, else what the helper makes of it;
    none when it is no picture or takes too long."""
    mime, width, height = sniff(data)
    if mime != "other" and width * height <= max_pixels:
        return Fitted(data)
    if seconds <= 0:
        return Fitted(None, _TOO_LONG)
    command = [sys.executable, "-s", "-P", str(HERE), "--picture", "-", str(max_pixels)]
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Fitted(None, _TOO_LONG)
    except (OSError, subprocess.SubprocessError):
        return Fitted(None, _UNREADABLE)
    shown = done.stdout[_TOLD.size :]
    mime, width, height = sniff(shown)
    if mime == "other":
        return Fitted(None, _UNREADABLE)
    return Fitted(shown, _note(_TOLD.unpack_from(done.stdout), (width, height)))


def _note(told: tuple[int, ...], size: tuple[int, int]) -> str:
    what = "was converted" if told[:2] == size else f"was shrunk to {size[0]}x{size[1]}"
    note = f"A picture of {told[0]}x{told[1]} pixels {what} to be shown."
    if told[2] > 1:
        note += f" It has {told[2]} {'pages' if told[3] else 'frames'}; the first is shown."
    return note
