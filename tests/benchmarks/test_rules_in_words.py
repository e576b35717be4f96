"""The rules of the 30 tasks to the letter: their words, the canonical answer, the reason of a miss;
and the comparisons on every side of a box, a set, a circle."""

from __future__ import annotations

import pytest

from benchmarks.cwi.fields import Field, read_values
from benchmarks.cwi.rules import RULES, describe, score
from benchmarks.numbers import clean, numbers
from tests.benchmarks.test_rules import TABLE

WORDS: dict[str, tuple[str, str, str]] = {
    # task: (rule in words, canonical form of what is inside, reason of what is outside)
    "circular_shift": (
        "dx ±2; dy ±2",
        "-36,111",
        "dx off by 2.1: within 2 inclusive",
    ),
    "restore_then_count": (
        "count exact",
        "23",
        "count off by 1: exact",
    ),
    "shift_rot_align": (
        "dx ±2; dy ±2; theta ±1.875 (mod 360)",
        "14,-9,-182",
        "theta off by 1.9: within 2 inclusive, within 1.875 inclusive",
    ),
    "alignment": (
        "dx ±2; dy ±2",
        "-119.5,43",
        "dy off by 2.01: within 2 inclusive",
    ),
    "rot_scale": (
        "angle ±3 (mod 360); scale ±0.05",
        "181,1.06",
        "scale off by 0.0501: within 3 inclusive, within 0.05 inclusive",
    ),
    "transform_chain": (
        "dx exact; dy exact; rot_k exact; fliph exact",
        "12,-70,1,0",
        "fliph off by 1: exact",
    ),
    "unshuffle2d": (
        "several groups, as gold: strip exact",
        "rows: 2,0,1; cols: 1,2,0",
        "strip 0 off by 1, strip 1 off by 2, strip 2 off by 1 and 3 more: exact",
    ),
    "jigsaw": (
        "several groups, as gold: tile exact",
        "2,0,3,1",
        "tile 0 off by 2, tile 1 off by 2: exact",
    ),
    "rotated_jigsaw": (
        "several groups, as gold: tile exact; k exact",
        "2:1,0:3,3:0,1:2",
        "k 3 off by 1: exact",
    ),
    "restore_then_measure": (
        "percent ±1.5",
        "31.9",
        "percent off by 1.51: within 1.5 inclusive",
    ),
    "ring_rotor": (
        "ring exact; angle ±5 (mod 360)",
        "2,359",
        "angle off by 5.01: exact, within 5 inclusive",
    ),
    "double_exposure": (
        "several groups, part of the answer: shift ±8",
        "-38,26",
        "shift 1 off by 8.1: within 8 inclusive",
    ),
    "grating_period": (
        "period ±1.5",
        "17",
        "period off by 1.51: within 1.5 inclusive",
    ),
    "anomaly_v2": (
        "several groups, part of the answer: row exact; col exact",
        "(0,1),(2,3)",
        "1 cells missing, 1 too many",
    ),
    "peak_count": (
        "count exact",
        "14",
        "count off by 1: exact",
    ),
    "congruent_pair": (
        "i exact; j exact",
        "3,7",
        "i off by 4, j off by 4: exact",
    ),
    "trace_length": (
        "length ±0.3",
        "4.4",
        "length off by 0.32: within 0.3 inclusive",
    ),
    "scan_moire": (
        "scale ±0.004",
        "1.035",
        "scale off by 0.0041: within 0.004 inclusive",
    ),
    "crop_provenance": (
        "1 box x1,y1,x2,y2, IoU at least 0.5",
        "105,195,310,405",
        "IoU 0.499, at least 0.5",
    ),
    "brightest_blob": (
        "x ±2; y ±2",
        "241,130",
        "x off by 2.1: within 2 inclusive",
    ),
    "sub_rect_swap": (
        "2 boxes x1,y1,x2,y2, IoU at least 0.5",
        "500,500,700,690; 0,0,100,98",
        "IoU 0.490, at least 0.5",
    ),
    "retouch_region": (
        "1 box x1,y1,x2,y2, IoU at least 0.5",
        "100,200,300,400",
        "IoU 0.499, at least 0.5",
    ),
    "circle_fit": (
        "x ±4; y ±4",
        "202,97",
        "x off by 4.01: within 4 inclusive",
    ),
    "print_misreg": (
        "dx ±0.3; dy ±0.3",
        "-1.2,0.8",
        "dy off by 0.31: within 0.3 inclusive",
    ),
    "gain_center": (
        "several groups, part of the answer: x ±15; y ±15",
        "110,118; 299,52",
        "x 0 off by 200, y 0 off by 70, x 1 off by 200 and 1 more: within 15 inclusive",
    ),
    "film_color": (
        "R ±10; G ±10; B ±10",
        "200,30,120",
        "R off by 11: within 10 inclusive",
    ),
    "swatch_rgb": (
        "R ±10; G ±10; B ±10",
        "14,30,60",
        "B off by 10.5: within 10 inclusive",
    ),
    "patch_mean_dots": (
        "R ±10; G ±10; B ±10",
        "90,91,92",
        "R off by 11: within 10 inclusive",
    ),
    "color_count": (
        "count exact",
        "7",
        "count off by 1: exact",
    ),
    "channel_mix": (
        "R ±8; G ±8; B ±8",
        "130,60,32",
        "R off by 8.5: within 8 inclusive",
    ),
}


@pytest.mark.parametrize("task", RULES)
def test_words(task: str) -> None:
    words, canonical, reason = WORDS[task]
    case = TABLE[task]
    assert describe(task) == words
    assert score(task, case.gold, case.inside).answer == canonical
    aside = f" ({RULES[task].choice})" if RULES[task].choice else ""
    assert score(task, case.gold, case.outside).reason == reason + aside
    assert score(task, case.gold, "").reason == "the span is empty" + aside


CHOICES = {
    "circular_shift": "per axis, as the card says 'each'",
    "shift_rot_align": "per axis, as the card says 'each'; the angle wraps at 360",
    "rot_scale": "the angle wraps at 360",
    "ring_rotor": "the angle wraps at 360: a turn by 359 is a turn by -1",
    "anomaly_v2": "a set: repeats and order do not matter",
}


@pytest.mark.parametrize("task", CHOICES)
def test_choices(task: str) -> None:
    assert RULES[task].choice == CHOICES[task]


@pytest.mark.parametrize(
    ("span", "reason"),
    [
        ("0,0,3,3", "all 2 cells"),
        ("3,3,0,0,3,3", "all 2 cells"),
        ("0,0,1,1,2,2", "1 cells missing, 2 too many"),
    ],
)
def test_cells(span: str, reason: str) -> None:
    got = score("anomaly_v2", "(0,0),(3,3)", span)
    assert got.reason.startswith(reason + " (")
    assert got.value == (reason == "all 2 cells")


def test_cells_are_shown_once_and_in_order() -> None:
    assert score("anomaly_v2", "(0,1)", "10,0 2,5 2,0 10,0").answer == "(2,0),(2,5),(10,0)"


@pytest.mark.parametrize(
    ("span", "reason"),
    [
        ("0,0,10,10", "IoU 1.000, at least 0.5"),
        ("0,5,10,10", "IoU 0.500, at least 0.5"),
        ("0,5.01,10,10", "IoU 0.499, at least 0.5"),
        ("4,0,14,10", "IoU 0.429, at least 0.5"),
        ("-4,0,6,10", "IoU 0.429, at least 0.5"),
        ("0,4,10,14", "IoU 0.429, at least 0.5"),
        ("0,-4,10,6", "IoU 0.429, at least 0.5"),
        ("20,0,30,10", "IoU 0.000, at least 0.5"),
        ("0,20,10,30", "IoU 0.000, at least 0.5"),
        ("20,20,30,30", "IoU 0.000, at least 0.5"),
        ("10,0,20,10", "IoU 0.000, at least 0.5"),
        ("10,0,0,10", "a box with x2 <= x1 or y2 <= y1 has no area"),
        ("0,10,10,0", "a box with x2 <= x1 or y2 <= y1 has no area"),
        ("10,10,0,0", "a box with x2 <= x1 or y2 <= y1 has no area"),
        ("0,0,0,10", "a box with x2 <= x1 or y2 <= y1 has no area"),
        ("0,0,10,0", "a box with x2 <= x1 or y2 <= y1 has no area"),
    ],
)
def test_a_box(span: str, reason: str) -> None:
    got = score("retouch_region", "0,0,10,10", span)
    assert got.reason.startswith(reason + " (")
    assert got.value == (reason in ("IoU 1.000, at least 0.5", "IoU 0.500, at least 0.5"))


def test_boxes_of_any_size_and_order() -> None:
    assert score("retouch_region", "0.1,0.1,0.2,0.2", "0.1,0.1,0.2,0.2").value == 1
    two = "0,0,10,10; 50,50,60,60"
    assert score("sub_rect_swap", two, "50,50,60,60; 0,0,10,10").value == 1
    assert score("sub_rect_swap", two, "50,50,60,60; 0,0,10,4").reason.startswith("IoU 0.400")
    assert "has no area" in score("sub_rect_swap", two, "50,50,60,60; 0,0,10,0").reason


def test_only_angles_wrap() -> None:
    assert score("circular_shift", "2,0", "362,0").value == 0
    assert score("ring_rotor", "2,5", "362,5").value == 0
    assert score("rot_scale", "5,1", "361,1.0").value == 0
    for turn in ("1", "3", "357", "359", "361", "-1", "719", "-361", "-357"):
        assert score("rot_scale", "0,1", f"{turn},1").value == 1, turn
    for turn in ("4", "3.1", "356.9", "356", "-4", "180", "90"):
        assert score("rot_scale", "0,1", f"{turn},1").value == 0, turn


@pytest.mark.parametrize(
    ("span", "misses"),
    [
        ("1,1,3", "tile 0 off by 1"),
        ("1,2,3", "tile 0 off by 1, tile 1 off by 1"),
        ("1,2,4", "tile 0 off by 1, tile 1 off by 1, tile 2 off by 1"),
    ],
)
def test_misses_are_named(span: str, misses: str) -> None:
    assert score("jigsaw", "0,1,3", span).reason == f"{misses}: exact"


@pytest.mark.parametrize("task", [t for t in RULES if "exact" in WORDS[t][0]])
def test_whole_numbers(task: str) -> None:
    """A fraction in a field that is exact is of another type; `.0` is none."""
    gold = TABLE[task].gold
    digits = [
        at for at, char in enumerate(gold) if char.isdigit() and not gold[at + 1 :][:1].isdigit()
    ]
    places = digits[:1] if task == "ring_rotor" else digits
    for at in places:
        half, whole = (gold[: at + 1] + more + gold[at + 1 :] for more in (".5", ".0"))
        assert score(task, gold, whole).value == 1
        got = score(task, gold, half)
        assert got.outcome == "unparsed"
        assert got.reason.startswith("expected a whole number for ")


def test_many_misses_are_counted() -> None:
    got = score("jigsaw", "0,1,2,3,4", "1,2,3,4,5")
    assert got.reason == "tile 0 off by 1, tile 1 off by 1, tile 2 off by 1 and 2 more: exact"
    assert score("double_exposure", "1,2", "1").reason.startswith(
        "expected 2 values or points, found 1 ("
    )


ALIASES = {
    "dx": ("dx", "δx", "x", "DX"),
    "dy": ("dy", "δy", "y", "Δy"),
    "theta": ("theta", "θ", "angle", "rotation", "Theta"),
    "angle": ("angle", "theta", "θ", "rotation"),
    "scale": ("scale", "s", "S"),
    "ring": ("ring", "ring_index"),
    "rot_k": ("rot_k", "rot", "k"),
    "fliph": ("fliph", "flip_h", "flip", "flipH"),
    "R": ("R", "red", "r"),
    "G": ("G", "green", "g"),
    "B": ("B", "blue", "b"),
    "row": ("row", "r", "Row"),
    "col": ("col", "column", "c"),
    "x": ("x", "X"),
    "j": ("j",),
}


@pytest.mark.parametrize(
    ("name", "word"), [(name, word) for name, words in ALIASES.items() for word in words]
)
def test_every_label_reorders(name: str, word: str) -> None:
    fields = (Field("other"), Field(name))
    for text in (f"{word}=5, other=3", f"({word}, other) = (5, 3)", f'{{"{word}": 5, "other": 3}}'):
        assert read_values(text, fields, colour=False, boolean=False) == (3, 5), text
    assert read_values(f"un{word}d=5, other=3", fields, colour=False, boolean=False) == (5, 3)


@pytest.mark.parametrize(
    "text",
    [
        "dy and dx are 5, 3",
        "dy, dx 5, 3",
        "dy=5, dx 3",
        "dy=5, dy=3",
        "q=5, dx=3",
        "(dy, q) = 5, 3",
    ],
)
def test_what_does_not_label_each_number_keeps_the_order(text: str) -> None:
    fields = (Field("dx"), Field("dy"))
    assert read_values(text, fields, colour=False, boolean=False) == (5, 3)


def test_headers_hold_for_every_group() -> None:
    fields = (Field("row"), Field("col"))
    spans = {"(col, row): 1,2 3,4": (2, 1, 4, 3), "cells (col, row): 1,2": (2, 1)}
    for text, values in spans.items():
        assert read_values(text, fields, colour=False, boolean=False) == values
    far = "col, row " + "." * 80 + ": 1,2"
    assert read_values(far, fields, colour=False, boolean=False) == (1, 2)
    near = "col, row " + "." * 60 + ": 1,2"
    assert read_values(near, fields, colour=False, boolean=False) == (2, 1)


def test_other_spellings_of_values() -> None:
    chain = "12,-70,1,1"
    for word in ("true", "True", "TRUE"):
        assert score("transform_chain", chain, f"12,-70,1,{word}").value == 1
    for word in ("false", "FALSE"):
        assert score("transform_chain", "12,-70,1,0", f"12,-70,1,{word}").value == 1
    for word in ("trueish", "untrue", "yes"):
        assert score("transform_chain", chain, f"12,-70,1,{word}").outcome == "unparsed"
    assert score("jigsaw", "1", "true").outcome == "unparsed"
    for span in ("#0C2238", "#0c2238.", "rgb: #0c2238", "(12, 34, 56)"):
        assert score("swatch_rgb", "12,34,56", span).value == 1
    for span in ("#0c22389", "#0c223", "0c2238", "#0c2238 #0c2238"):
        assert score("swatch_rgb", "12,34,56", span).outcome == "unparsed"
    assert score("swatch_rgb", "12,34,56", "#ffffff is 12,34,56").value == 1
    assert score("circular_shift", "12,34", "#0c2238").outcome == "unparsed"


@pytest.mark.parametrize("dash", "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d")
def test_every_dash_is_a_sign(dash: str) -> None:
    assert [str(number.value) for number in numbers(clean(f"{dash}5, 3{dash}4"))] == [
        "-5",
        "3",
        "4",
    ]


@pytest.mark.parametrize("space", "\u2009\u200a\u202f\u200b\u200c\u200d\u2060\ufeff\u00ad")
def test_every_thin_space_is_none(space: str) -> None:
    assert [str(number.value) for number in numbers(clean(f"1{space}2"))] == ["12"]


@pytest.mark.parametrize("space", " \u00a0\u2003\u3000\t\n")
def test_other_spaces_separate(space: str) -> None:
    assert [str(number.value) for number in numbers(clean(f"1{space}2"))] == ["1", "2"]
