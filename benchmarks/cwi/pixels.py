"""The few pixel operations that all generators share; deterministic for locked versions."""

# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from benchmarks.cwi.item import Pixels, Plane

THUMBNAIL = 32
"""Pixels on the long side of what the thumbnail reader sees."""


def to_bytes(values: Plane) -> Pixels:
    """Rounded half to even and clipped to 0-255."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def with_noise(values: Plane, sigma: float, rng: np.random.Generator) -> Plane:
    """Gaussian noise, independent in every pixel and channel; none at all for sigma 0."""
    return values + rng.normal(0.0, sigma, values.shape) if sigma else values


def through_jpeg(picture: Pixels, quality: int) -> Pixels:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=quality, subsampling=0)
    return np.asarray(Image.open(buffer).convert("RGB"))


def png(picture: Pixels) -> bytes:
    """The file of an item: fixed encoder settings, no metadata."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def resized(picture: Pixels, width: int, height: int) -> Pixels:
    """Bicubic, anti-aliased when it shrinks."""
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BICUBIC))


def grey(picture: Pixels) -> Plane:
    """Mean of the channels."""
    return picture.astype(np.float64).mean(axis=2)


def gradient(plane: Plane) -> Plane:
    """Length of the central-difference gradient."""
    down, right = np.gradient(plane)
    return np.hypot(down, right)


def correlation(plane: Plane, template: Plane) -> Plane:
    """Normalised correlation of the template with every place that holds it whole, -1 to 1; 0 where
    a place is flat beside the template, for there the quotient would be noise."""
    height, width = template.shape
    zeroed = template - template.mean()
    centred = plane - plane.mean()
    energy = float((zeroed**2).sum())
    spectrum = np.fft.rfft2(centred) * np.conj(np.fft.rfft2(zeroed, s=plane.shape))
    fit = np.fft.irfft2(spectrum, s=plane.shape)
    fit = fit[: plane.shape[0] - height + 1, : plane.shape[1] - width + 1]
    total = _window_sums(centred, height, width)
    spread = _window_sums(centred**2, height, width) - total**2 / template.size
    textured = spread > 0.01 * energy
    return np.where(textured, fit / np.sqrt(np.where(textured, spread, 1) * energy), 0.0)


def _window_sums(plane: Plane, height: int, width: int) -> Plane:
    sums = np.pad(plane.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    across = sums[:, width:] - sums[:, :-width]
    return across[height:] - across[:-height]


def thumbnail(picture: Pixels) -> tuple[Pixels, float]:
    """The whole file shrunk to 32 px on its long side, and the factor by which it was shrunk."""
    factor = max(picture.shape[:2]) / THUMBNAIL
    height, width = (max(round(length / factor), 1) for length in picture.shape[:2])
    small = Image.fromarray(picture).resize((width, height), Image.Resampling.BOX)
    return np.asarray(small), factor
