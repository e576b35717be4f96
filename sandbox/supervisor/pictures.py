"""Pictures as a person would see them: any PIL mode, array or figure → PNG of a bounded size."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from PIL import Image

_DIRECT = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})


def visible(image: Image.Image) -> Image.Image:
    """The picture in 8 bits a channel; 16-bit, 32-bit and float values are scaled to be seen."""
    if image.mode in _DIRECT:
        return image
    if image.mode == "F" or image.mode.startswith("I"):
        return Image.fromarray(to_bytes(np.asarray(image)))
    if image.mode in ("PA", "La", "RGBa"):
        return image.convert("RGBA")
    return image.convert("RGB")


def to_bytes(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers → uint8. Floats in 0…1 and numbers in 0…255 keep their meaning; others are stretched
    from their smallest (or 0) to their largest value. NaN and infinities become 0."""
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * 255
    if values.dtype == np.uint8:
        return values
    numbers = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = min(0.0, float(numbers.min())), float(numbers.max())
    fractions = np.issubdtype(values.dtype, np.floating)
    if low == 0 and fractions and high <= 1:
        low, high = 0.0, 1.0
    elif low == 0 and high <= 255:
        low, high = 0.0, 255.0
    scaled = (numbers - low) * (255.0 / ((high - low) or 1.0))
    return np.rint(scaled).clip(0, 255).astype(np.uint8)


def shrink(image: Image.Image, max_pixels: int) -> Image.Image:
    """The same picture with at most so many pixels."""
    if image.width * image.height <= max_pixels:
        return image
    scale = math.sqrt(max_pixels / (image.width * image.height))
    width = max(1, min(int(image.width * scale), max_pixels))
    height = max(1, min(int(image.height * scale), max_pixels // width))
    if image.mode in ("1", "P"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    return image.resize((width, height), Image.Resampling.BOX)


def png(image: Image.Image, max_pixels: int) -> tuple[bytes, dict[str, Any]] | None:
    """PNG bytes and the display metadata; None for a picture without pixels."""
    if not image.width or not image.height:
        return None
    small = shrink(image, max_pixels)
    buffer = io.BytesIO()
    visible(small).save(buffer, "PNG", compress_level=4)
    metadata = {} if small is image else {"shrunk_from": [image.width, image.height]}
    return buffer.getvalue(), metadata


def from_cv2(array: Any) -> Image.Image:
    """What `cv2.imshow` would show: BGR order, 16 bits divided by 256, floats times 255."""
    values = np.asarray(array)
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise ValueError(f"imshow: expected a picture, got an array of shape {values.shape}")
    if values.dtype == np.uint16:
        values = (values >> 8).astype(np.uint8)
    elif values.dtype == np.bool_:
        values = values.astype(np.uint8) * 255
    elif values.dtype != np.uint8:
        scale = 255.0 if np.issubdtype(values.dtype, np.floating) else 1.0
        values = np.rint(np.nan_to_num(values * scale)).clip(0, 255).astype(np.uint8)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.ndim == 3:
        order = [2, 1, 0] if values.shape[2] < 4 else [2, 1, 0, 3]
        values = values[:, :, [n for n in order if n < values.shape[2]]]
    return Image.fromarray(np.ascontiguousarray(values))
