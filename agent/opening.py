"""A picture file → decoded pixels, and these as a person would see them.

The file is hostile: only the listed formats, at most so many pixels, PNG and JPEG reduced to their
pixels first (`sandbox.plain`), so that no metadata, however broken or large, costs a good picture
or the host's time.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from dataclasses import dataclass

import numpy as np
from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from agent import picturefile
from agent.errors import InputProblem
from sandbox.decoding import check_cost
from sandbox.plain import plain

MAX_PIXELS = 89_478_485
"""Above this a file is taken for a decompression bomb (where Pillow begins to warn)."""
PATIENCE = 10
"""An input may cost so many times what a picture from a box may: photographs are larger."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "PPM", "ICO", "AVIF", "JPEG2000")
"""What is read. Not: formats that run other programs (EPS) or that nobody takes pictures in."""
_NAMES = "PNG, JPEG, WebP, GIF, TIFF, BMP, PPM, ICO, AVIF, JPEG 2000"
MOST_METADATA = 1 << 24
"""Bytes; reading more takes Pillow seconds."""
_DAMAGE = (
    OSError,
    ValueError,
    ArithmeticError,
    SyntaxError,
    EOFError,
    LookupError,
    TypeError,
    MemoryError,
    RuntimeError,
    struct.error,
    zlib.error,
)
"""What Pillow's decoders raise on broken bytes, and they do raise all of it."""
_ALPHA = frozenset({"RGBA", "LA", "PA", "RGBa", "La"})
_STRIP = 1 << 20
"""Values that are stretched at a time."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A decoded picture, its first frame, not turned yet (TIFF aside, which Pillow turns)."""

    pixels: Pillow.Image
    form: str
    """The real format, whatever the file's name says."""
    data: bytes
    """The file; of PNG and JPEG what its pixels need, nothing else."""
    turn: int = 1
    """EXIF's orientation."""
    frames: int = 1
    foreign_profile: bool = False
    sound: bool = True
    """Whether PIL in the box will open the file with all its metadata."""


def open_picture(data: bytes, name: str) -> Opened:
    """
    Raises:
        InputProblem: the bytes are no picture, are damaged, or decode to too many pixels. One line.
    """
    try:
        # Pillow warns of metadata that it skips; the pixels are what counts here.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            return _opened(data, name)
    except UnidentifiedImageError:
        found, advice = picturefile.foreign(data)
        raise InputProblem(
            f"{name}: expected a picture ({_NAMES}), found {found}; {advice}"
        ) from None
    except Pillow.DecompressionBombError:
        raise InputProblem(
            f"{name}: expected at most {MAX_PIXELS} pixels, found far more; shrink it"
        ) from None
    except _DAMAGE as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputProblem(
            f"{name}: expected a whole picture, found a damaged one ({said}); fetch it again"
        ) from None


def _opened(data: bytes, name: str) -> Opened:
    formats, pure = _FORMATS, data
    if picturefile.is_png(data) or picturefile.is_jpeg(data):
        found = plain(data)
        _check_size(found.width, found.height, name)
        check_cost(found, patience=PATIENCE)
        formats, pure = (found.mime.removeprefix("image/").upper(),), found.data
    pixels = Pillow.open(io.BytesIO(pure), formats=formats)
    _check_size(pixels.width, pixels.height, name)
    pixels.load()
    # What a decoder of several formats in one says of itself (AVIF); never what Pillow would count.
    exif, profile = pixels.info.get("exif"), pixels.info.get("icc_profile")
    return Opened(
        pixels,
        str(pixels.format),
        pure,
        picturefile.orientation(data, exif if isinstance(exif, bytes) else b""),
        int(getattr(pixels, "n_frames", 1))
        if pixels.format == "AVIF"
        else picturefile.frames(data),
        picturefile.has_foreign_profile(data, profile if isinstance(profile, bytes) else b""),
        pure is data or _opens(data, len(data) - len(pure), formats),
    )


def _opens(data: bytes, metadata: int, formats: tuple[str, ...]) -> bool:
    if metadata > MOST_METADATA:
        return False
    try:
        with Pillow.open(io.BytesIO(data), formats=formats) as whole:
            whole.load()
    except _DAMAGE:
        return False
    return True


def _check_size(width: int, height: int, name: str) -> None:
    if not 0 < width * height <= MAX_PIXELS:
        raise InputProblem(
            f"{name}: expected 1 to {MAX_PIXELS} pixels, found {width}×{height}; shrink the picture"
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person would see."""

    pixels: Pillow.Image
    """Mode `RGB` or `L`."""
    notes: list[str]
    """What is told of the file and of what was done to show it."""
    as_is: bool
    """Whether any viewer of the file sees just this."""


def shown(opened: Opened, pixels: Pillow.Image, name: str) -> Shown:
    """8-bit, as a person would see it, with notes on what that took.

    16-bit and float: the range of values is stretched to black…white. Transparency: on white.
    Colour profiles: never applied, so that colours are the numbers that code reads from the file.

    Raises:
        InputProblem: a colour space that cannot be shown.
    """
    notes: list[str] = []
    if opened.frames > 1:
        many = opened.frames > picturefile.MOST_FRAMES
        count = f"more than {picturefile.MOST_FRAMES}" if many else str(opened.frames)
        notes.append(f"first of {count} {'pages' if opened.form == 'TIFF' else 'frames'}")
    if opened.foreign_profile:
        notes.append("its colour profile is not applied")
    if pixels.mode in ("RGB", "L") and "transparency" not in pixels.info:
        return Shown(pixels, notes, as_is=True)
    if pixels.mode.startswith(("I", "F")):
        notes.append("grey levels stretched to 8 bits for showing; the file has the real values")
        return Shown(_stretched(pixels), notes, as_is=False)
    try:
        if pixels.mode in _ALPHA or "transparency" in pixels.info:
            return _on_white(pixels, notes)
        flat = pixels.convert("L" if pixels.mode == "1" else "RGB")
    except ValueError:
        raise InputProblem(
            f"{name}: expected a colour space that can be shown, found mode {pixels.mode}; "
            "convert it to RGB"
        ) from None
    return Shown(flat, [*notes, f"the file's mode is {pixels.mode}"], as_is=False)


def _on_white(pixels: Pillow.Image, notes: list[str]) -> Shown:
    alpha = pixels.convert("RGBA")
    if alpha.getchannel("A").getextrema() == (255, 255):
        # As matplotlib saves figures: nothing shines through.
        return Shown(alpha.convert("RGB"), notes, as_is=True)
    white = Pillow.new("RGBA", alpha.size, "white")
    flat = Pillow.alpha_composite(white, alpha).convert("RGB")
    return Shown(flat, [*notes, "transparent parts shown on white"], as_is=False)


def _stretched(pixels: Pillow.Image) -> Pillow.Image:
    """The smallest value black, the largest white, NaN black; strip by strip, for memory."""
    values = np.asarray(pixels)
    rows = max(1, _STRIP // values.shape[1])
    strips = [values[y : y + rows] for y in range(0, values.shape[0], rows)]
    finite = [part for strip in strips if (part := strip[np.isfinite(strip)]).size]
    low = float(min((part.min() for part in finite), default=0.0))
    high = float(max((part.max() for part in finite), default=0.0))
    if high <= low:
        return Pillow.new("L", pixels.size, _level(low, pixels.mode))
    grey = np.empty(values.shape, np.uint8)
    for n, strip in enumerate(strips):
        scaled = (strip.astype(np.float64) - low) * (1 / (high - low))
        scaled = np.nan_to_num(scaled, nan=0.0, posinf=1.0, neginf=0.0)
        grey[n * rows : n * rows + len(strip)] = np.clip(scaled * 255 + 0.5, 0, 255)
    return Pillow.fromarray(grey, "L")


def _level(value: float, mode: str) -> int:
    """One value all over: its place in the type's range is all there is to show."""
    if mode.startswith("I;16"):
        value /= 257
    elif mode == "F" and 0 <= value <= 1:
        value *= 255
    return int(min(255, max(0, value)))
