"""The typed values of an answer span: which numbers it holds and in which order they are meant.

The count of numbers decides whether a span is of its task's type. Labels (`dy=5, dx=3`,
`dy, dx = 5, 3`, `cols: …; rows: …`) may put fields into another order; other words are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from benchmarks.numbers import Number, clean, numbers

_ALIASES: dict[str, tuple[str, ...]] = {
    "dx": ("dx", "δx", "x"),
    "dy": ("dy", "δy", "y"),
    "theta": ("theta", "θ", "angle", "rotation"),
    "angle": ("angle", "theta", "θ", "rotation"),
    "scale": ("scale", "s"),
    "ring": ("ring", "ring_index"),
    "rot_k": ("rot_k", "rot", "k"),
    "fliph": ("fliph", "flip_h", "flip"),
    "R": ("r", "red"),
    "G": ("g", "green"),
    "B": ("b", "blue"),
    "row": ("row", "r"),
    "col": ("col", "column", "c"),
}
_LABEL_BEFORE = re.compile(r"([^\W\d_]\w*)[\s\"'`*)\]]*[:=][\s\"'`*(\[]*$")
_HEADER = re.compile(r"[:=][\s\"'`*(\[]*$")
_WORD = re.compile(r"[^\W\d_]\w*")
_HEX = re.compile(r"#([0-9a-fA-F]{6})(?![0-9a-zA-Z])")
_BOOLEAN = re.compile(r"(?<![a-z])(true|false)(?![a-z])", re.IGNORECASE)
_REACH = 80
"""Characters before a number that are searched for its label."""


@dataclass(frozen=True, slots=True)
class Field:
    """One number of an answer."""

    name: str
    tolerance: Decimal = Decimal(0)
    """Inclusive."""
    integer: bool = False
    circular: bool = False
    """Degrees that wrap at 360."""


def read_values(
    span: str, fields: tuple[Field, ...], *, colour: bool, boolean: bool
) -> tuple[Decimal, ...]:
    """All numbers of the span, those of each group in the order of `fields`.

    `colour` also reads one `#rrggbb`; `boolean` also reads true and false as 1 and 0.
    """
    text = clean(span)
    if boolean:
        text = _BOOLEAN.sub(lambda word: "1" if word[0].lower() == "true" else "0", text)
    if colour:
        text, code = _HEX.sub(" ", text), _HEX.findall(text)
        if len(code) == 1 and not numbers(text):
            return tuple(Decimal(byte) for byte in bytes.fromhex(code[0]))
    found = numbers(text)
    return _reordered(text, found, tuple(field.name for field in fields))


def read_sections(span: str, names: tuple[str, ...]) -> tuple[tuple[Decimal, ...], ...] | None:
    """The numbers of each named section (`rows: … cols: …`), in the order of `names`; None where
    the span does not name each of them exactly once, before its numbers."""
    text = clean(span)
    marks: list[tuple[int, str]] = []
    for name in names:
        label = re.compile(rf"(?<![^\W_]){name}\w{{0,8}}\b[^:=\d]{{0,20}}[:=]", re.IGNORECASE)
        here = [match.end() for match in label.finditer(text)]
        if len(here) != 1:
            return None
        marks.append((here[0], name))
    marks.sort()
    found = numbers(text)
    if found and found[0].start < marks[0][0]:
        return None
    ends = [start for start, _ in marks[1:]] + [len(text) + 1]
    sections = {
        name: tuple(number.value for number in found if start <= number.start < end)
        for (start, name), end in zip(marks, ends, strict=True)
    }
    return tuple(sections[name] for name in names)


def _reordered(text: str, found: tuple[Number, ...], names: tuple[str, ...]) -> tuple[Decimal, ...]:
    values = tuple(number.value for number in found)
    size = len(names)
    if not found or len(found) % size:
        return values
    labels = _label_of_each(text, found) or _header_labels(text, found, size)
    if labels is None:
        return values
    known = [_field(label, names) for label in labels]
    result: list[Decimal] = []
    for at in range(0, len(values), size):
        group = dict(zip(known[at : at + size], values[at : at + size], strict=True))
        if set(group) != set(names):
            return values
        result += [group[name] for name in names]
    return tuple(result)


def _label_of_each(text: str, found: tuple[Number, ...]) -> list[str] | None:
    """The label right before every number, or None where one has none."""
    labels: list[str] = []
    end = 0
    for number in found:
        label = _LABEL_BEFORE.search(text[max(end, number.start - _REACH) : number.start])
        if label is None:
            return None
        labels.append(label.group(1))
        end = number.end
    return labels


def _header_labels(text: str, found: tuple[Number, ...], size: int) -> list[str] | None:
    """The labels of a list form such as `(dy, dx) = (5, 3)`, once for each group of numbers."""
    head = text[max(found[0].start - _REACH, 0) : found[0].start]
    if _HEADER.search(head) is None:
        return None
    words = _WORD.findall(head)[-size:]
    return words * (len(found) // size) if len(words) == size else None


def _field(label: str, names: tuple[str, ...]) -> str:
    word = label.lower()
    return next((name for name in names if word in _ALIASES.get(name, (name.lower(),))), "")
