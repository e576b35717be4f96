"""What the model sees and what lies in the box, of every picture, with one coordinate contract.

In the box a picture keeps its original bytes under its own name; only where EXIF asks for a turn is
the named file an upright PNG, and the original lies in `original/`. What is sent is an 8-bit RGB
PNG or JPEG, shown as a person would see it, shrunk to the pixel budget or enlarged to a minimum;
a text beside it states sizes and scale. A PNG or JPEG that needs none of this is sent as it is, its
metadata aside.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, replace
from typing import Literal

from PIL import Image as Pillow

from agent.messages import Image
from agent.opening import Opened, open_picture, shown
from benchmarks.sample import Picture
from sandbox.outputs import Display
from sandbox.spec import InputFile

MIN_SIDE = 28
"""Servers that cut pictures into patches refuse smaller ones."""
MAX_SIDE = 8000
"""Several servers refuse a longer side, whatever the number of pixels."""
MAX_ASPECT = 100
"""Longer strips are padded: several vision encoders refuse an aspect ratio of 200 and more."""
_AS_IS: dict[str, Literal["image/png", "image/jpeg"]] = {"PNG": "image/png", "JPEG": "image/jpeg"}
"""Formats that every server reads: sent as they are when nothing had to be done to show them."""
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")
_TURNS = {
    2: Pillow.Transpose.FLIP_LEFT_RIGHT,
    3: Pillow.Transpose.ROTATE_180,
    4: Pillow.Transpose.FLIP_TOP_BOTTOM,
    5: Pillow.Transpose.TRANSPOSE,
    6: Pillow.Transpose.ROTATE_270,
    7: Pillow.Transpose.TRANSVERSE,
    8: Pillow.Transpose.ROTATE_90,
}
"""EXIF's orientation → what makes it upright."""


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
        InputProblem: the bytes are no picture, are damaged, or decode to too many pixels.
    """
    opened = open_picture(picture.data, picture.name)
    original = InputFile(f"original/{picture.name}", picture.data)
    if opened.turn == 1:
        image, text = _ready(opened, opened.pixels, picture.name, "prompt", max_pixels)
        if opened.sound:
            return Prepared((InputFile(picture.name, picture.data),), image, text)
        files = (InputFile(picture.name, opened.data), original)
        return Prepared(files, image, f"{text}; without its metadata, which is broken")
    pixels, known = opened.pixels, _TURNS[opened.turn]
    # Pillow has turned a TIFF already.
    upright = pixels if opened.form == "TIFF" else pixels.transpose(known)
    name, data = _upright_file(upright, picture.name)
    turned = replace(opened, form=opened.form if opened.form == "JPEG" else "", data=b"")
    image, text = _ready(turned, upright, name, "prompt", max_pixels)
    return Prepared(
        (InputFile(name, data), original), image, f"{text}; turned upright as its EXIF asks"
    )


def _upright_file(upright: Pillow.Image, name: str) -> tuple[str, bytes]:
    """The named file of a turned picture, every value as it was."""
    stem = name.rpartition(".")[0] or name
    if upright.mode in ("I", "F"):  # PNG has neither 32-bit nor float values
        return f"{stem}.tif", _encode(upright, "TIFF")
    if upright.mode.startswith("I;16"):
        upright = upright if upright.mode == "I;16" else upright.convert("I;16")
    elif upright.mode not in _PNG_MODES:
        upright = upright.convert("RGB")
    return f"{stem}.png", _encode(upright, "PNG")


def from_display(display: Display, name: str, max_pixels: int) -> tuple[Image, str]:
    """A picture that came back from the box, within the pixel budget, and the text about it.

    The session has decoded it once already and taken it down to its pixels.
    """
    opened = open_picture(display.data, name)
    return _ready(opened, opened.pixels, name, "box", max_pixels)


def _ready(
    opened: Opened,
    pixels: Pillow.Image,
    name: str,
    origin: Literal["prompt", "box"],
    max_pixels: int,
) -> tuple[Image, str]:
    seen = shown(opened, pixels, name)
    original, notes = seen.pixels, seen.notes
    sized = _sized(original, max_pixels)
    sent = _padded(sized)
    if sent is not sized:
        notes.append("white added on the right and at the bottom")
    data, mime = opened.data, _AS_IS.get(opened.form)
    if mime is None or not data or not seen.as_is or sent is not original:
        # A photograph stays a JPEG, everything else (plots, masks, glyphs) is kept without loss.
        mime = "image/jpeg" if opened.form == "JPEG" else "image/png"
        data = _encode(sent, "JPEG" if mime == "image/jpeg" else "PNG")
    image = Image(
        data, mime, sent.width, sent.height, name, origin, original.width, original.height
    )
    return image, "; ".join([_sizes(original.size, sized.size, sent.size), *notes])


def _sizes(original: tuple[int, int], content: tuple[int, int], sent: tuple[int, int]) -> str:
    """The coordinate line. Both axes are scaled alike, to the nearest pixel."""
    scale = content[0] / original[0] if original[0] >= original[1] else content[1] / original[1]
    text = f"{original[0]}×{original[1]} px, sent at {sent[0]}×{sent[1]}"
    if content == original:
        return f"{text} (scale 1)"
    return f"{text} (scale {scale:.4g}: file pixels = sent pixels × {1 / scale:.4g})"


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


def _encode(shown: Pillow.Image, form: Literal["PNG", "JPEG", "TIFF"]) -> bytes:
    buffer = io.BytesIO()
    options: dict[str, int] = {"JPEG": {"quality": 92}, "PNG": {"compress_level": 4}}.get(form, {})
    shown.save(buffer, form, **options)
    return buffer.getvalue()
