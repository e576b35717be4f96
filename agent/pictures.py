"""What the model sees and what lies in the box, of every picture, with one coordinate contract.

In the box a picture keeps its original bytes under its own name; only where EXIF asks for a turn is
the named file an upright PNG, and the original lies in `original/`. What is sent is an 8-bit RGB
PNG or JPEG, shown as a person would see it, shrunk to the pixel budget or enlarged to a minimum;
a text beside it states sizes and scale. Bytes are sent untouched where that is possible.
"""

from __future__ import annotations

import io
import math
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image as Pillow
from PIL import ImageOps, UnidentifiedImageError

from agent.errors import InputProblem
from agent.messages import Image
from benchmarks.sample import Picture
from sandbox.outputs import Display
from sandbox.spec import InputFile

MAX_INPUT_PIXELS = 89_478_485
"""Above this a file is taken for a decompression bomb (where Pillow begins to warn)."""
MIN_SIDE = 28
"""Servers that cut pictures into patches refuse smaller ones."""
MAX_SIDE = 8000
"""Several servers refuse a longer side, whatever the number of pixels."""
MAX_ASPECT = 100
"""Longer strips are padded: several vision encoders refuse an aspect ratio of 200 and more."""
_AS_IS: dict[str, Literal["image/png", "image/jpeg"]] = {"PNG": "image/png", "JPEG": "image/jpeg"}
"""Formats that every server reads: sent as they are when nothing had to be done to show them."""
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")


@dataclass(frozen=True, slots=True)
class Prepared:
    """One picture, ready: its files for the box, the image to send, what is told of it."""

    files: tuple[InputFile, ...]
    image: Image
    text: str
    """`1920×1080 px, sent at 960×540 (scale 0.5: …)`: sizes, scale, what was done to show it."""


def prepare(picture: Picture, max_pixels: int) -> Prepared:
    """Reads one input picture.

    Raises:
        InputProblem: the bytes are no picture, are truncated, or decode to too many pixels.
    """
    opened = _open(picture.data, picture.name)
    if _orientation(opened) == 1:
        image, text = _ready(opened, picture.data, picture.name, "prompt", max_pixels)
        return Prepared((InputFile(picture.name, picture.data),), image, text)
    upright = ImageOps.exif_transpose(opened)
    name = picture.name.rsplit(".", 1)[0] + ".png"
    data = _encode(upright if upright.mode in _PNG_MODES else upright.convert("RGB"), "PNG")
    image, text = _ready(_open(data, name), data, name, "prompt", max_pixels)
    files = (InputFile(name, data), InputFile(f"original/{picture.name}", picture.data))
    return Prepared(files, image, f"{text}; turned upright as its EXIF asks")


def from_display(display: Display, name: str, max_pixels: int) -> tuple[Image, str]:
    """A picture that came back from the box, within the pixel budget, and the text about it.

    The session has decoded it once already, so that its size and type can be relied on.
    """
    return _ready(_open(display.data, name), display.data, name, "box", max_pixels)


def _ready(
    opened: Pillow.Image,
    data: bytes,
    name: str,
    origin: Literal["prompt", "box"],
    max_pixels: int,
) -> tuple[Image, str]:
    shown, notes = _shown(opened, name)
    sized = _sized(shown, max_pixels)
    sent = _padded(sized)
    if sent is not sized:
        notes.append("white added on the right and at the bottom")
    mime = _AS_IS.get(opened.format or "")
    if mime is None or notes or sent is not shown:
        # A photograph stays a JPEG, everything else (plots, masks, glyphs) is kept without loss.
        mime = "image/jpeg" if opened.format in ("JPEG", "MPO") else "image/png"
        data = _encode(sent, "JPEG" if mime == "image/jpeg" else "PNG")
    image = Image(data, mime, sent.width, sent.height, name, origin, shown.width, shown.height)
    return image, "; ".join([_sizes(shown.size, sized.size, sent.size), *notes])


def _sizes(original: tuple[int, int], content: tuple[int, int], sent: tuple[int, int]) -> str:
    """The coordinate line. Both axes are scaled alike, to the nearest pixel."""
    scale = content[0] / original[0] if original[0] >= original[1] else content[1] / original[1]
    text = f"{original[0]}×{original[1]} px, sent at {sent[0]}×{sent[1]}"
    if content == original:
        return f"{text} (scale 1)"
    return f"{text} (scale {scale:.4g}: file pixels = sent pixels × {1 / scale:.4g})"


def _open(data: bytes, name: str) -> Pillow.Image:
    """Opened and fully decoded, so that a truncated file is found here and nowhere later."""
    try:
        # Pillow warns of metadata that it skips; the pixels are what counts here.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            opened = Pillow.open(io.BytesIO(data))
            pixels = opened.width * opened.height
            if not 0 < pixels <= MAX_INPUT_PIXELS:
                raise InputProblem(
                    f"{name}: expected 1 to {MAX_INPUT_PIXELS} pixels, found "
                    f"{opened.width}×{opened.height}; shrink the picture"
                )
            opened.load()
    except UnidentifiedImageError:
        raise InputProblem(
            f"{name}: expected a picture (PNG, JPEG, WebP, GIF, TIFF, BMP), found {_looks(data)}; "
            "convert it"
        ) from None
    except Pillow.DecompressionBombError:
        raise InputProblem(
            f"{name}: expected at most {MAX_INPUT_PIXELS} pixels, found far more; shrink it"
        ) from None
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error) as error:
        raise InputProblem(
            f"{name}: expected a whole picture, found a damaged one ({error}); fetch it again"
        ) from None
    return opened


def _looks(data: bytes) -> str:
    return f"{len(data)} bytes that begin with {data[:8]!r}" if data else "an empty file"


def _orientation(opened: Pillow.Image) -> int:
    """EXIF's tag 274; 1 (upright) when absent, out of range or when the metadata is broken."""
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            value = opened.getexif().get(274, 1)
    except (ValueError, SyntaxError, OSError, struct.error, UnicodeError):
        # The pixels are good; metadata that cannot be read asks for nothing.
        return 1
    return value if isinstance(value, int) and 2 <= value <= 8 else 1


def _shown(opened: Pillow.Image, name: str) -> tuple[Pillow.Image, list[str]]:
    """8-bit `RGB` or `L` as a person would see it, with notes on what that took.

    16-bit and float: the range of values is stretched to black…white. Transparency: on white.
    """
    notes: list[str] = []
    frames = int(getattr(opened, "n_frames", 1))
    if frames > 1 and opened.format != "MPO":
        opened.seek(0)
        notes.append(f"first of {frames} {'pages' if opened.format == 'TIFF' else 'frames'}")
    if opened.mode in ("RGB", "L") and "transparency" not in opened.info:
        return opened, notes
    if opened.mode.startswith(("I", "F")):
        notes.append("grey levels stretched to 8 bits for showing; the file has the real values")
        return _stretched(opened), notes
    if opened.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in opened.info:
        alpha = opened.convert("RGBA")
        if alpha.getchannel("A").getextrema() == (255, 255):
            return alpha.convert(
                "RGB"
            ), notes  # as matplotlib saves figures: nothing shines through
        notes.append("transparent parts shown on white")
        white = Pillow.new("RGBA", alpha.size, "white")
        return Pillow.alpha_composite(white, alpha).convert("RGB"), notes
    return opened.convert("L" if opened.mode == "1" else "RGB"), [*notes, f"from {opened.mode}"]


def _stretched(opened: Pillow.Image) -> Pillow.Image:
    values = np.asarray(opened).astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if high <= low:
        # One value all over: its place in the type's range is all there is to show.
        level = low / 257 if opened.mode.startswith("I;16") else low
        return Pillow.new("L", opened.size, int(min(255, max(0, level))))
    scaled = np.nan_to_num((values - low) / (high - low), nan=0.0, posinf=1.0, neginf=0.0)
    return Pillow.fromarray(np.clip(scaled * 255 + 0.5, 0, 255).astype(np.uint8), "L")


def _sized(shown: Pillow.Image, max_pixels: int) -> Pillow.Image:
    """Shrunk to the budget, or enlarged by a whole factor to the minimum side; else the same."""
    width, height = shown.size
    factor = min(math.sqrt(max_pixels / (width * height)), MAX_SIDE / max(width, height))
    if factor < 1:
        size = (max(1, int(width * factor)), max(1, int(height * factor)))
        return shown.resize(size, Pillow.Resampling.LANCZOS)
    times = math.ceil(MIN_SIDE / min(width, height))
    if 1 < times <= factor:
        return shown.resize((width * times, height * times), Pillow.Resampling.NEAREST)
    return shown


def _padded(shown: Pillow.Image) -> Pillow.Image:
    """With white at right and bottom where a side is under the minimum or the strip too long."""
    least = max(MIN_SIDE, math.ceil(max(shown.size) / MAX_ASPECT))
    size = (max(shown.width, least), max(shown.height, least))
    if size == shown.size:
        return shown
    canvas = Pillow.new(shown.mode, size, "white")
    canvas.paste(shown, (0, 0))
    return canvas


def _encode(shown: Pillow.Image, form: Literal["PNG", "JPEG"]) -> bytes:
    buffer = io.BytesIO()
    options: dict[str, int] = {"quality": 92} if form == "JPEG" else {"compress_level": 4}
    shown.save(buffer, form, **options)
    return buffer.getvalue()
