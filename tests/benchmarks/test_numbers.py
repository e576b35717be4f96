"""Which numbers a text holds, digit for digit."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cwi.fields import Field, read_sections, read_values
from benchmarks.numbers import clean, numbers, plain

READ: dict[str, list[str]] = {
    "12": ["12"],
    "-37, 112": ["-37", "112"],
    "−5.13 %": ["-5.13"],
    "1,57": ["1", "57"],
    "12 000": ["12", "000"],
    "12\u202f000": ["12000"],
    r"12\,000": ["12000"],
    "１２．５": ["12.5"],
    "2.5 × 10⁻³": ["2.5", "10", "3"],
    "1e-3": ["0.001"],
    ".5, 5.": ["0.5", "5"],
    "3-5": ["3", "5"],
    "5--3": ["5", "-3"],
    "x1=4, x_2=5, x_{3}=6": ["4", "5", "6"],
    "X1=4, Ä2=5, n.3, n .3": ["4", "5", "0.3"],
    "**12**, -**7**": ["12", "-7"],
    "$-37$,$112$": ["-37", "112"],
    r"\boxed{12}": ["12"],
    r"\boxed{\text{-4}}": ["-4"],
    r"45^\circ": ["45"],
    "~ 42°C!": ["42"],
    "约12个": ["12"],
    "NaN": [],
    "nan, 5": [],
    "5 or infinity": [],
    "-INF 5": [],
    "0": ["0"],
    "-0.0": ["0"],
    "-Infinity": [],
    "info 5": ["5"],
    "": [],
}


@pytest.mark.parametrize("text", READ)
def test_numbers(text: str) -> None:
    assert [number.value for number in numbers(clean(text))] == [Decimal(n) for n in READ[text]]


PAIR = (Field("dx"), Field("dy"))
ORDERED: dict[str, tuple[int, ...]] = {
    "3, 5": (3, 5),
    "dx=3, dy=5": (3, 5),
    "dy=5, dx=3": (3, 5),
    '{"dy": 5, "dx": 3}': (3, 5),
    "**dy:** 5 **dx:** 3": (3, 5),
    "(dy, dx) = (5, 3)": (3, 5),
    "dy = 5 and 3": (5, 3),
    "first: 5, second: 3": (5, 3),
    "dy=5, dx=3; dx=1, dy=2": (3, 5, 1, 2),
}


@pytest.mark.parametrize("text", ORDERED)
def test_labels_reorder(text: str) -> None:
    assert read_values(text, PAIR, colour=False, boolean=False) == ORDERED[text]


SECTIONS: dict[str, tuple[tuple[int, ...], ...] | None] = {
    "rows: 2,0; cols: 1": ((2, 0), (1,)),
    "cols: 1\nrows: 2,0": ((2, 0), (1,)),
    "Row order = [2, 0], column order = [1]": ((2, 0), (1,)),
    "**rows**: 2 **cols**: 1": ((2,), (1,)),
    "rows: cols: 1": ((), (1,)),
    "rows:2,0;cols:1": ((2, 0), (1,)),
    "5 rows: 2; cols: 1": None,
    "rows: 2; rows: 3; cols: 1": None,
    "rows: 2, 1": None,
    "arrows: 2; cols: 1": None,
    "my_rows: 2; my_cols: 1": ((2,), (1,)),
    "rows 1 and 2: 5; cols: 3": None,
    "": None,
}


@pytest.mark.parametrize("text", SECTIONS)
def test_sections(text: str) -> None:
    assert read_sections(text, ("row", "col")) == SECTIONS[text]


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    for number in numbers(clean(text)):
        assert number.value.is_finite()
        assert Decimal(plain(number.value)).is_finite()
