"""What counts as correct on each of CwI-Bench's 30 tasks: one table, and the score by it.

Every item scores 0 or 1. The benchmark's card gives the conditions; what it leaves open is decided
in this table, with the reason beside it, and shows in the `reason` of every score. Tolerances are
inclusive and compared in exact decimal arithmetic. Card: https://huggingface.co/datasets/ytz009/CwI-Bench
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from benchmarks.answers import is_placeholder
from benchmarks.cwi.compare import Values, boxes, cells, in_order
from benchmarks.cwi.fields import Field, read_sections, read_values
from benchmarks.errors import BenchmarkError, GoldError
from benchmarks.numbers import EXACT, plain
from benchmarks.sample import Score

Group = Literal["transformation", "perception", "localization", "colour"]


@dataclass(frozen=True, slots=True)
class Rule:
    group: Group
    fields: tuple[Field, ...]
    """The numbers of one group of an answer, in the order of the canonical form."""
    groups: int | Literal["as gold", "part of the answer"] = 1
    """How many groups an answer has. Another count is `unparsed`; `wrong` where it is part of the
    answer."""
    compare: Literal["in order", "cells", "boxes"] = "in order"
    sections: tuple[str, ...] = ()
    choice: str = ""
    """What the card leaves open and how it is decided here."""
    divide_above: Decimal | None = None
    """A gold above this is plainly in another unit: both sides are divided by 200 first."""


def _within(tolerance: str, *names: str, circular: bool = False) -> tuple[Field, ...]:
    return tuple(Field(name, Decimal(tolerance), circular=circular) for name in names)


def _exact(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, integer=True) for name in names)


_AXES = "per axis, as the card says 'each'"
_POINT = "per axis: the card's 'within ±n px' is read as for the tasks where it says 'each'"
_BOX = "x1,y1,x2,y2: a corner form is the one in which 'normalized 0-1000' fits all four numbers"
_CIRCLE = "the angle wraps at 360"
_COUNT = (Field("count", integer=True),)
_BOX_FIELDS = tuple(Field(name) for name in ("x1", "y1", "x2", "y2"))

RULES: Mapping[str, Rule] = {
    "circular_shift": Rule("transformation", _within("2", "dx", "dy"), choice=_AXES),
    "restore_then_count": Rule("transformation", _COUNT),
    "shift_rot_align": Rule(
        "transformation",
        _within("2", "dx", "dy") + _within("1.875", "theta", circular=True),
        choice=f"{_AXES}; {_CIRCLE}",
    ),
    "alignment": Rule("transformation", _within("2", "dx", "dy"), choice=_AXES),
    "rot_scale": Rule(
        "transformation",
        _within("3", "angle", circular=True) + _within("0.05", "scale"),
        choice=_CIRCLE,
    ),
    "transform_chain": Rule("transformation", _exact("dx", "dy", "rot_k", "fliph")),
    "unshuffle2d": Rule(
        "transformation",
        _exact("strip"),
        groups="as gold",
        sections=("row", "col"),
        choice="rows first unless labels say otherwise; the direction is the item's own gold",
    ),
    "jigsaw": Rule("transformation", _exact("tile"), groups="as gold"),
    "rotated_jigsaw": Rule("transformation", _exact("tile", "k"), groups="as gold"),
    "restore_then_measure": Rule("transformation", _within("1.5", "percent")),
    "ring_rotor": Rule(
        "transformation",
        _exact("ring") + _within("5", "angle", circular=True),
        choice=f"{_CIRCLE}: a turn by 359 is a turn by -1",
    ),
    "double_exposure": Rule(
        "transformation",
        _within("8", "shift"),
        groups="part of the answer",
        choice="order as the gold; another count of shifts is wrong",
    ),
    "grating_period": Rule("perception", _within("1.5", "period")),
    "anomaly_v2": Rule(
        "perception",
        _exact("row", "col"),
        groups="part of the answer",
        compare="cells",
        choice="a set: repeats and order do not matter",
    ),
    "peak_count": Rule("perception", _COUNT),
    "congruent_pair": Rule(
        "perception",
        _exact("i", "j"),
        choice="ordered, the number in image first: the two pictures are numbered apart",
    ),
    "trace_length": Rule(
        "perception",
        _within("0.3", "length"),
        choice="length/200 as given; a gold above 40 is in pixels: both are divided by 200",
        divide_above=Decimal(40),
    ),
    "scan_moire": Rule("perception", _within("0.004", "scale")),
    "crop_provenance": Rule("localization", _BOX_FIELDS, compare="boxes", choice=_BOX),
    "brightest_blob": Rule("localization", _within("2", "x", "y"), choice=_POINT),
    "sub_rect_swap": Rule(
        "localization", _BOX_FIELDS, groups=2, compare="boxes", choice=f"{_BOX}; order-free"
    ),
    "retouch_region": Rule("localization", _BOX_FIELDS, compare="boxes", choice=_BOX),
    "circle_fit": Rule("localization", _within("4", "x", "y"), choice=_POINT),
    "print_misreg": Rule("localization", _within("0.3", "dx", "dy"), choice=_AXES),
    "gain_center": Rule(
        "localization",
        _within("15", "x", "y"),
        groups="part of the answer",
        choice=f"{_POINT}; order as the gold; another count of points is wrong",
    ),
    "film_color": Rule("colour", _within("10", "R", "G", "B")),
    "swatch_rgb": Rule("colour", _within("10", "R", "G", "B")),
    "patch_mean_dots": Rule("colour", _within("10", "R", "G", "B")),
    "color_count": Rule("colour", _COUNT),
    "channel_mix": Rule("colour", _within("8", "R", "G", "B")),
}


class _Unparsed(ValueError):
    """The span is not of the task's type; the text says why. Never leaves this module."""


def score(task: str, target: str, span: str | None, meta: Mapping[str, Any] | None = None) -> Score:
    """The score of one answer span. Pure.

    Raises:
        BenchmarkError: no such task.
        GoldError: the target is not of the task's type, or fails against itself.
    """
    del meta  # the typed gold in it is compared with the target at load, not here
    rule = rule_of(task)
    gold = _gold(task, rule, target)
    if span is None:
        return Score(0, "no_span", None, "the response has no <answer> span")
    try:
        got = _read(rule, span, like=gold)
    except _Unparsed as problem:
        return Score(0, "unparsed", None, f"{problem}{_aside(rule)}")
    correct, detail = _compare(rule, gold, got)
    reason = f"{detail}{_aside(rule)}"
    if correct:
        return Score(1, "correct", _canonical(rule, got), reason)
    return Score(0, "wrong", _canonical(rule, got), reason)


def rule_of(task: str) -> Rule:
    """The task's row of the table.

    Raises:
        BenchmarkError: no such task.
    """
    if task not in RULES:
        raise BenchmarkError(
            f"expected one of CwI's {len(RULES)} tasks, found {task!r}; `pot list` names them"
        )
    return RULES[task]


def describe(task: str) -> str:
    """The task's rule in a few words: its fields, how near each must be.

    Raises:
        BenchmarkError: no such task.
    """
    rule = rule_of(task)
    if rule.compare == "boxes":
        return f"{rule.groups} box{'es' if rule.groups == 2 else ''} x1,y1,x2,y2, IoU at least 0.5"
    near = "; ".join(
        f"{field.name} {f'±{field.tolerance}' if field.tolerance else 'exact'}"
        f"{' (mod 360)' if field.circular else ''}"
        for field in rule.fields
    )
    return near if rule.groups == 1 else f"several groups, {rule.groups}: {near}"


def _gold(task: str, rule: Rule, target: str) -> Values:
    try:
        gold = _read(rule, target, like=None)
    except _Unparsed as problem:
        raise GoldError(f"the gold answer {target!r} is no answer to {task}: {problem}") from None
    if not _compare(rule, gold, gold)[0]:
        raise GoldError(f"the gold answer {target!r} of {task} does not score 1 against itself")
    return gold


def _read(rule: Rule, span: str, *, like: Values | None) -> Values:
    """The span's groups of numbers; `like` is the gold, where the answer must have its shape."""
    size = len(rule.fields)
    if not span.strip():
        raise _Unparsed("the span is blank" if span else "the span is empty")
    if is_placeholder(span):
        raise _Unparsed("the span is a placeholder, no answer")
    sections = read_sections(span, rule.sections) if rule.sections else None
    if sections is None:
        names = {field.name for field in rule.fields}
        flat = read_values(span, rule.fields, colour="R" in names, boolean="fliph" in names)
        sections = (flat,)
    elif like is not None and len(like.sections) > 1:
        _expect(sections, like.sections)
    flat = tuple(number for section in sections for number in section)
    groups = len(like.groups) if rule.groups == "as gold" and like else rule.groups
    expected = f"{groups * size}" if isinstance(groups, int) else f"a multiple of {size}"
    wrong_count = len(flat) != groups * size if isinstance(groups, int) else len(flat) % size
    if wrong_count or not flat:
        raise _Unparsed(f"expected {expected} numbers, found {len(flat)}")
    grouped = tuple(flat[at : at + size] for at in range(0, len(flat), size))
    for group in grouped:
        for field, value in zip(rule.fields, group, strict=True):
            if field.integer and value != value.to_integral_value(context=EXACT):
                raise _Unparsed(f"expected a whole number for {field.name}, found {plain(value)}")
    return Values(grouped, tuple(len(section) for section in sections))


def _expect(sections: tuple[tuple[Decimal, ...], ...], lengths: tuple[int, ...]) -> None:
    found = tuple(len(section) for section in sections)
    if found != lengths:
        raise _Unparsed(f"expected sections of {lengths} numbers, found {found}")


def _compare(rule: Rule, gold: Values, got: Values) -> tuple[bool, str]:
    if rule.compare == "boxes":
        return boxes(gold, got)
    if rule.compare == "cells":
        return cells(gold, got)
    scale = Decimal(1)
    if rule.divide_above is not None and gold.groups[0][0] > rule.divide_above:
        scale = Decimal(200)
    return in_order(rule.fields, gold, got, scale)


def _aside(rule: Rule) -> str:
    return f" ({rule.choice})" if rule.choice else ""


def _canonical(rule: Rule, got: Values) -> str:
    groups = [[plain(value) for value in group] for group in got.groups]
    if rule.compare == "cells":
        unique = list(map(list, set(map(tuple, groups))))
        return ",".join(f"({','.join(cell)})" for cell in sorted(unique, key=_as_numbers))
    if len(got.sections) > 1:
        flat = [value for group in groups for value in group]
        cut = got.sections[0]
        return f"rows: {','.join(flat[:cut])}; cols: {','.join(flat[cut:])}"
    inner = ":" if rule.groups == "as gold" else ","
    outer = "; " if len(rule.fields) > 1 and rule.groups != "as gold" else ","
    return outer.join(inner.join(group) for group in groups)


def _as_numbers(cell: list[str]) -> tuple[Decimal, ...]:
    return tuple(Decimal(value) for value in cell)
