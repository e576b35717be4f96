"""swatch_rgb: the true colour of a flat swatch under a global colour cast, with reference patches.

The cast is a curve per channel: lift + gain · 255 · (v / 255) ^ gamma. Harder tiers have a stronger
cast, gamma, a lift and more noise. Nothing clips, noise aside.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.cwi.item import SIDE, Draft, Pixels, Plane, Task, Tier, by_tier, example
from benchmarks.cwi.pixels import thumbnail, to_bytes, with_noise

_PATCHES = 8
_PATCH_WIDTH, _STRIP = SIDE // _PATCHES, 56
_SWATCH, _FRAME = 64, 3
_NOISE = (1.0, 3.0, 5.0, 8.0)
_GAIN = ((0.7, 0.97), (0.6, 0.97), (0.55, 0.95), (0.5, 0.92))
_GAMMA = ((1.0, 1.0), (0.85, 1.2), (0.75, 1.35), (0.65, 1.5))
_LIFT = (0.0, 0.0, 8.0, 18.0)
_PREDICTED_ERROR = 3.0

OPENING = "This photograph was taken under a global colour cast."
_PROMPT = """{opening} Everything in the picture went through it, the strip and the swatch too: \
every channel was changed by a smooth rising curve of its own, the same for all pixels; then noise \
was added.

Along the bottom edge runs a strip of 8 flat reference patches, each 60 pixels wide and 56 high. \
Their true colours before the cast, from left to right, as (R,G,B):
{references}
A flat square swatch, 64 x 64 pixels inside a thin frame, has its centre at x={x}, y={y} (x \
to the right, y down, from the top-left corner of the 480 x 480 picture).

What is the true colour of the swatch before the cast, as whole numbers R,G,B from 0 to 255? An \
answer within 10 on each channel is right.

Answer with R,G,B in exactly this form: <answer>{example}</answer>"""


def draw(photo: Pixels, rng: np.random.Generator, tier: Tier) -> Draft:
    references = _references(rng)
    colour = np.rint(rng.dirichlet(np.full(_PATCHES, 0.6)) @ references)
    margin = _SWATCH // 2 + _FRAME + 4
    x = int(rng.integers(margin, SIDE - margin + 1))
    y = int(rng.integers(margin, SIDE - _STRIP - margin + 1))
    lift = rng.uniform(0.0, by_tier(tier, _LIFT), 3)
    gain = np.minimum(rng.uniform(*by_tier(tier, _GAIN), 3), (248 - lift) / 255)
    gamma = rng.uniform(*by_tier(tier, _GAMMA), 3)
    noise = by_tier(tier, _NOISE)

    def cast(values: Plane) -> Plane:
        return lift + gain * 255 * (values / 255) ** gamma

    frame = np.rint(rng.uniform(0, 255, 3))
    scene = _scene(photo, references, (frame, colour), (x, y))
    curves = cast(np.arange(256.0)[:, None])
    shown = np.stack([curves[scene[:, :, channel], channel] for channel in range(3)], axis=2)
    answer = ",".join(str(int(level)) for level in colour)
    slope = cast(colour + 0.5) - cast(colour - 0.5)
    return Draft(
        picture=to_bytes(with_noise(shown, noise, rng)),
        prompt=_PROMPT.format(
            opening=OPENING,
            references=" ".join(_text(patch) for patch in references),
            x=x,
            y=y,
            example=example(("120,45,200", "31,160,88"), answer),
        ),
        answer=answer,
        gold=tuple(int(level) for level in colour),
        parameters={
            "references": references.astype(int).tolist(),
            "centre": [x, y],
            "frame": frame.astype(int).tolist(),
            "lift": lift.tolist(),
            "gain": gain.tolist(),
            "gamma": gamma.tolist(),
            "noise_sigma": noise,
        },
        ill_posed=_loose(noise, slope, references),
    )


def shortcuts(draft: Draft) -> Mapping[str, str]:
    x, y = (int(number) for number in draft.parameters["centre"])
    half = _SWATCH // 2
    picture = draft.picture.astype(np.float64)
    shown = picture[y - half : y + half, x - half : x + half].mean(axis=(0, 1))
    true = np.array(draft.parameters["references"], dtype=np.float64)
    strip = picture[SIDE - _STRIP :].reshape(_STRIP, _PATCHES, _PATCH_WIDTH, 3).mean(axis=(0, 2))
    small, factor = thumbnail(draft.picture)
    seen = small[min(int(y / factor), 31), min(int(x / factor), 31)].astype(np.float64)
    answers = {
        "as shown": shown,
        "thumbnail": seen,
        "mid-grey": np.full(3, 128.0),
        "mean of the references": true.mean(axis=0),
        "nearest reference": true[((strip - shown) ** 2).sum(axis=1).argmin()],
        "one gain for all channels": shown * true.mean() / strip.mean(),
        "grey world": shown * 128 / picture[: SIDE - _STRIP].mean(axis=(0, 1)),
        "white frame": shown * 255 / np.maximum(picture[y - half - 2, x], 1),
    }
    return {name: _text(np.clip(np.rint(rgb), 0, 255)) for name, rgb in answers.items()}


def _references(rng: np.random.Generator) -> Plane:
    """Eight colours of whole levels, any two at least 60 apart, spread over every channel."""
    while True:
        colours = np.rint(rng.uniform(20, 236, (_PATCHES, 3)))
        gaps = np.sqrt(((colours[:, None] - colours[None]) ** 2).sum(axis=2))
        gaps[np.diag_indices(_PATCHES)] = np.inf
        if gaps.min() >= 60 and (colours.max(axis=0) - colours.min(axis=0)).min() >= 150:
            return colours


def _scene(
    photo: Pixels, references: Plane, colours: tuple[Plane, Plane], centre: tuple[int, int]
) -> Pixels:
    """The picture before the cast; `colours` of the frame, which tells nothing, and the swatch."""
    scene = photo.copy()
    for place, patch in enumerate(references):
        scene[SIDE - _STRIP :, place * _PATCH_WIDTH : (place + 1) * _PATCH_WIDTH] = patch
    x, y = centre
    for half, colour in zip((_SWATCH // 2 + _FRAME, _SWATCH // 2), colours, strict=True):
        scene[y - half : y + half, x - half : x + half] = colour
    return scene


def _loose(noise: float, slope: Plane, references: Plane) -> str | None:
    """The bound on the error of an exact inversion: rounding and noise of the means over slope."""
    doubt = 0.5 + 3 * noise / (_PATCH_WIDTH * _STRIP) ** 0.5 * 2
    error = float(doubt / slope.min())
    return f"predicted error {error:.1f} levels" if error > _PREDICTED_ERROR else None


def _text(colour: Plane) -> str:
    return "(" + ",".join(str(int(level)) for level in colour) + ")"


TASK = Task("swatch_rgb", 1, OPENING, draw, shortcuts)
