"""circular_shift: a photograph rolled with wrap-around; asked is by how much.

Harder tiers add noise, stronger compression, and decoys that look like a seam at a glance: thin
full-length lines and exposure steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.cwi.item import SIDE, Draft, Pixels, Plane, Task, Tier, by_tier, example
from benchmarks.cwi.pixels import through_jpeg, thumbnail, to_bytes, with_noise

_LEAST, _MOST = 24, 232
_NOISE = (0.0, 2.5, 5.0, 8.0)
_QUALITY = (90, 80, 70, 60)
_DECOYS = (0, 1, 2, 3)
_VISIBLE_STEP, _VISIBLE_SHARE = 12, 0.6
_APART = 12
"""Pixels between a decoy and the seam, the border or another decoy."""

OPENING = "This photograph was rolled with wrap-around."
_PROMPT = """{opening} Its content was moved dx pixels to the right and dy pixels down; \
what left the picture on one side came back in on the opposite side. {decoys}

Which shift was applied? dx and dy are signed whole pixels (negative: to the left, or up), each \
taken the smaller way round, so that 24 <= |dx| <= 232 and 24 <= |dy| <= 232. The picture is \
480 x 480 pixels. An answer within 2 pixels on each axis is right.

Answer with dx,dy in exactly this form: <answer>{example}</answer>"""


def draw(photo: Pixels, rng: np.random.Generator, tier: Tier) -> Draft:
    dx, dy = (
        int(rng.integers(_LEAST, _MOST + 1)) * (1 if rng.random() < 0.5 else -1) for _ in "xy"
    )
    quality, noise = by_tier(tier, _QUALITY), by_tier(tier, _NOISE)
    rolled = np.roll(through_jpeg(photo, quality), (dy, dx), axis=(0, 1))
    values = rolled.astype(np.float64)
    decoys = _decoys(values, rng, by_tier(tier, _DECOYS), taken=(dx % SIDE, dy % SIDE))
    answer = f"{dx},{dy}"
    return Draft(
        picture=to_bytes(with_noise(values, noise, rng)),
        prompt=_PROMPT.format(
            opening=OPENING,
            decoys=_decoy_text(len(decoys)),
            example=example(("-37,112", "64,-151"), answer),
        ),
        answer=answer,
        gold=(dx, dy),
        parameters={"jpeg_quality": quality, "noise_sigma": noise, "decoys": decoys},
        ill_posed=_hidden_seam(rolled, dx % SIDE, dy % SIDE),
    )


def shortcuts(draft: Draft) -> Mapping[str, str]:
    small, factor = thumbnail(draft.picture)
    glance = [_smaller_way(_strongest_step(small, axis) * factor) for axis in (1, 0)]
    constants = {f"constant {x},{y}": f"{x},{y}" for x in (-128, 0, 128) for y in (-128, 0, 128)}
    return {
        "no change": "0,0",
        "half the picture": f"{_MOST},{_MOST}",
        "thumbnail": f"{glance[0]},{glance[1]}",
        **constants,
    }


def _decoys(
    values: Plane, rng: np.random.Generator, count: int, taken: tuple[int, int]
) -> list[dict[str, Any]]:
    """Draws the decoys into `values`; each spans the picture. Returns what was drawn."""
    used = {"x": [taken[0]], "y": [taken[1]]}
    drawn: list[dict[str, Any]] = []
    while len(drawn) < count:
        axis = "x" if rng.random() < 0.5 else "y"
        at = int(rng.integers(_APART, SIDE - _APART))
        if any(abs(at - other) < _APART for other in used[axis]):
            continue
        used[axis].append(at)
        view = values if axis == "y" else values.swapaxes(0, 1)
        if rng.random() < 0.5:
            width = int(rng.integers(1, 3))
            colour = [int(level) for level in rng.integers(20, 236, 3)]
            view[at : at + width] = colour
            drawn.append({"kind": "line", "axis": axis, "at": at, "width": width, "rgb": colour})
        else:
            gain = round(float(rng.uniform(0.08, 0.2)) * (1 if rng.random() < 0.5 else -1), 3)
            view[at:] = np.clip(view[at:] * (1 + gain), 0, 255)
            drawn.append({"kind": "exposure step", "axis": axis, "at": at, "gain": 1 + gain})
    return drawn


def _decoy_text(count: int) -> str:
    if not count:
        return "Nothing else was done to it apart from compression."
    return (
        "After that, thin straight lines or steps in brightness that span the whole picture may "
        "have been added, and noise; none of them lies where the picture wraps."
    )


def _hidden_seam(rolled: Pixels, column: int, row: int) -> str | None:
    levels = rolled.astype(np.int16)
    across = np.abs(levels[:, column] - levels[:, column - 1]).max(axis=1)
    along = np.abs(levels[row] - levels[row - 1]).max(axis=1)
    for name, step in (("vertical", across), ("horizontal", along)):
        share = float((step > _VISIBLE_STEP).mean())
        if share < _VISIBLE_SHARE:
            return f"the {name} seam is seen along {share:.2f} of its length"
    return None


def _strongest_step(small: Pixels, axis: int) -> int:
    steps = np.abs(np.diff(small.astype(np.float64), axis=axis)).mean(axis=(1 - axis, 2))
    return int(steps.argmax()) + 1


def _smaller_way(position: float) -> int:
    shift = round(position) % SIDE
    return shift - SIDE if shift > SIDE // 2 else shift


TASK = Task("circular_shift", 1, OPENING, draw, shortcuts)
