"""How a typed answer is compared with the gold: in order, as a set of cells, as boxes.

Each function returns the verdict and one line that says by which condition. Exact arithmetic: what
lies on a boundary is inside, always.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

from benchmarks.cwi.fields import Field
from benchmarks.numbers import EXACT, plain

Box = tuple[Fraction, Fraction, Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Values:
    """An answer as read: groups of numbers (a point, a box, a cell, a tile)."""

    groups: tuple[tuple[Decimal, ...], ...]
    sections: tuple[int, ...]
    """How many numbers each section had; one section where the task has no sections."""


def in_order(
    fields: tuple[Field, ...], gold: Values, got: Values, scale: Decimal = Decimal(1)
) -> tuple[bool, str]:
    """Every number within its field's tolerance of the gold's at the same place, after both sides
    were divided by `scale`."""
    if len(got.groups) != len(gold.groups):
        return False, f"expected {len(gold.groups)} values or points, found {len(got.groups)}"
    misses: list[str] = []
    for place, (theirs, ours) in enumerate(zip(got.groups, gold.groups, strict=True)):
        for field, value, target in zip(fields, theirs, ours, strict=True):
            off = EXACT.divide(_distance(value, target, field), scale)
            if off > field.tolerance:
                where = field.name if len(gold.groups) == 1 else f"{field.name} {place}"
                misses.append(f"{where} off by {plain(off)}")
    condition = ", ".join(dict.fromkeys(_condition(field) for field in fields))
    return not misses, f"{_few(misses)}: {condition}" if misses else condition


def cells(gold: Values, got: Values) -> tuple[bool, str]:
    """The two sets of cells are equal."""
    expected, found = set(gold.groups), set(got.groups)
    if expected == found:
        return True, f"all {len(expected)} cells"
    return False, f"{len(expected - found)} cells missing, {len(found - expected)} too many"


def boxes(gold: Values, got: Values) -> tuple[bool, str]:
    """Each box reaches IoU 0.5 with its own gold box, in the best assignment; there are as many."""
    expected = [_box(group) for group in gold.groups]
    found = [_box(group) for group in got.groups]
    if any(box[2] <= box[0] or box[3] <= box[1] for box in found):
        return False, "a box with x2 <= x1 or y2 <= y1 has no area"
    best = max(min(map(_iou, expected, order)) for order in permutations(found))
    return best >= Fraction(1, 2), f"IoU {float(best):.3f}, at least 0.5"


def _distance(value: Decimal, target: Decimal, field: Field) -> Decimal:
    off = abs(EXACT.subtract(value, target))
    if not field.circular:
        return off
    turn = EXACT.remainder(off, Decimal(360))
    return min(turn, EXACT.subtract(Decimal(360), turn))


def _condition(field: Field) -> str:
    return f"within {field.tolerance} inclusive" if field.tolerance else "exact"


def _few(misses: list[str]) -> str:
    return ", ".join(misses[:3]) + (f" and {len(misses) - 3} more" if len(misses) > 3 else "")


def _box(group: tuple[Decimal, ...]) -> Box:
    x1, y1, x2, y2 = (Fraction(value) for value in group)
    return x1, y1, x2, y2


def _iou(a: Box, b: Box) -> Fraction:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return Fraction(0)
    shared = width * height
    return shared / (_area(a) + _area(b) - shared)


def _area(box: Box) -> Fraction:
    return (box[2] - box[0]) * (box[3] - box[1])
