"""crop_provenance: a photograph above, an altered, enlarged crop of it below; asked is its box.

Harder tiers take smaller crops and may mirror them, exchange channels, invert and bend the tones,
add noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.cwi.item import SIDE, Draft, Pixels, Plane, Task, Tier, by_tier, example
from benchmarks.cwi.pixels import (
    correlation,
    gradient,
    grey,
    resized,
    thumbnail,
    to_bytes,
    with_noise,
)

_CROP = ((72, 96), (60, 84), (48, 66), (36, 48))
_NOISE = (1.0, 3.0, 5.0, 7.0)
_GAMMA = (1.1, 1.3, 1.5, 1.7)
_GAP, _GROUND = 16, 128
_LEAST_SD = 18.0
_RUNNER_UP = 0.7
"""Correlation with the true place is 1; no other place may reach this."""

OPENING = "Below this photograph lies an altered crop of it."
_PROMPT = """{opening} The photograph is the upper 480 x 480 pixels of the file. Under a grey \
bar, centred, follows a square crop that was cut from it ({low} to {high} pixels wide and high in \
the photograph), then changed and shown enlarged 2 to 3 times. {changes}

Where in the photograph was the crop cut? Give its box as x1,y1,x2,y2 (left, top, right, bottom) \
in fractions of the photograph from 0 to 1000: x = 1000 * column / 480, y = 1000 * row / 480, from \
the top-left corner of the photograph. The box is right when its intersection over union with the \
true one is at least 0.5.

Answer with x1,y1,x2,y2 in exactly this form: <answer>{example}</answer>"""


def draw(photo: Pixels, rng: np.random.Generator, tier: Tier) -> Draft:
    low, high = by_tier(tier, _CROP)
    side = int(rng.integers(low, high + 1))
    x, y = (int(rng.integers(0, SIDE - side + 1)) for _ in "xy")
    shown = round(side * float(rng.uniform(2.0, 3.0)))
    crop = photo[y : y + side, x : x + side]
    changes = _changes(rng, tier)
    altered = to_bytes(with_noise(_altered(crop, changes), by_tier(tier, _NOISE), rng))
    box = tuple(round(1000 * edge / SIDE) for edge in (x, y, x + side, y + side))
    answer = ",".join(map(str, box))
    return Draft(
        picture=_canvas(photo, resized(altered, shown, shown)),
        prompt=_PROMPT.format(
            opening=OPENING,
            low=low,
            high=high,
            changes=_change_text(tier),
            example=example(("250,104,417,271", "512,330,640,458"), answer),
        ),
        answer=answer,
        gold=box,
        parameters={
            "box_px": [x, y, x + side, y + side],
            "shown_px": shown,
            "noise_sigma": by_tier(tier, _NOISE),
            **changes,
        },
        ill_posed=_ambiguous(photo, x, y, side),
    )


def shortcuts(draft: Draft) -> Mapping[str, str]:
    answers = {"whole photograph": "0,0,1000,1000"}
    for side in (75, 100, 150, 200):
        low, high = 500 - side // 2, 500 + side // 2
        answers[f"centre {side}"] = f"{low},{low},{high},{high}"
        answers[f"below the crop {side}"] = f"{low},{1000 - side},{high},1000"
    answers["thumbnail"] = _thumbnail_match(draft.picture)
    return answers


def _changes(rng: np.random.Generator, tier: Tier) -> dict[str, Any]:
    rank = by_tier(tier, (0, 1, 2, 3))
    gamma = by_tier(tier, _GAMMA)
    return {
        "gamma": round(float(rng.uniform(1 / gamma, gamma)), 3),
        "mirrored": bool(rank >= 1 and rng.random() < 0.5),
        "channels": [int(c) for c in rng.permutation(3)] if rank >= 2 else [0, 1, 2],
        "inverted": bool(rank >= 3 and rng.random() < 0.5),
    }


def _altered(crop: Pixels, changes: Mapping[str, Any]) -> Plane:
    values = 255 * (crop.astype(np.float64) / 255) ** changes["gamma"]
    values = values[:, :, changes["channels"]]
    if changes["inverted"]:
        values = 255 - values
    return values[:, ::-1] if changes["mirrored"] else values


def _change_text(tier: Tier) -> str:
    possible = ["its tones bent", "noise added"]
    harder = ["mirrored left-right", "its colour channels exchanged", "its tones inverted"]
    possible += harder[: by_tier(tier, (0, 1, 2, 3))]
    return f"It may have been changed in one or more of these ways: {', '.join(possible)}."


def _canvas(photo: Pixels, crop: Pixels) -> Pixels:
    side = crop.shape[0]
    canvas = np.full((SIDE + _GAP + side, SIDE, 3), _GROUND, dtype=np.uint8)
    canvas[:SIDE] = photo
    left = (SIDE - side) // 2
    canvas[SIDE + _GAP :, left : left + side] = crop
    return canvas


def _ambiguous(photo: Pixels, x: int, y: int, side: int) -> str | None:
    """On the clean photograph, with the true size: is there a second place, mirrored or not, that
    fits nearly as well?"""
    plane = grey(photo)
    crop = plane[y : y + side, x : x + side]
    if float(crop.std()) < _LEAST_SD:
        return f"standard deviation of the crop {float(crop.std()):.1f}"
    edges = gradient(plane)
    template = edges[y : y + side, x : x + side]
    for turned in (template, template[:, ::-1]):
        fit = correlation(edges, turned)
        near = side // 3
        fit[max(y - near, 0) : y + near + 1, max(x - near, 0) : x + near + 1] = -1
        if float(fit.max()) > _RUNNER_UP:
            return f"another place fits by {float(fit.max()):.2f}"
    return None


def _thumbnail_match(picture: Pixels) -> str:
    """Plain grey matching of the shrunk crop, taken as 2.5 times enlarged, in the shrunk photo."""
    small, factor = thumbnail(picture)
    photo = grey(small[: round(SIDE / factor)])
    side = picture.shape[0] - SIDE - _GAP
    width = max(round(side / 2.5 / factor), 1)
    left = (SIDE - side) // 2
    crop = grey(resized(picture[SIDE + _GAP :, left : left + side], width, width))
    rows, columns = (length - width + 1 for length in photo.shape)
    places = [(row, column) for row in range(rows) for column in range(columns)]
    miss = [
        float(((photo[row : row + width, column : column + width] - crop) ** 2).sum())
        for row, column in places
    ]
    row, column = places[int(np.argmin(miss))]
    scale = 1000 * factor / SIDE
    box = (column, row, column + width, row + width)
    return ",".join(str(round(edge * scale)) for edge in box)


TASK = Task("crop_provenance", 1, OPENING, draw, shortcuts)
