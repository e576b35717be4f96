"""The 30 tasks of CwI: what counts as correct, tried on both sides of every boundary."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import BenchmarkError, GoldError, score_response
from benchmarks.cwi.rules import RULES, describe, score


@dataclass(frozen=True)
class Case:
    gold: str
    inside: str
    """Well within, written in another way than the gold."""
    edge: str
    """Exactly on the boundary; the gold again where the task is exact."""
    outside: str
    arity: str
    """Too few or too many numbers."""
    arity_outcome: str = "unparsed"


TABLE: dict[str, Case] = {
    "circular_shift": Case("-37,112", "dy: 111, dx: -36", "-35,110", "-34.9,112", "-37"),
    "restore_then_count": Case("23", "23.0 discs", "23", "24", "23, 24"),
    "shift_rot_align": Case("14,-9,178", "14, −9, -182°", "16,-7,179.875", "14,-9,-180.1", "14,-9"),
    "alignment": Case("-120,44", "(-119.5, 43)", "-122,42", "-120,46.01", "-120,44,0"),
    "rot_scale": Case("-179,1.05", "angle=181, scale=1.06", "-176,1.1", "178,1.1001", "178"),
    "transform_chain": Case("12,-70,1,0", "12,-70,1,False", "+12,-70.0,1,0",
                            "12,-70,1,1", "12,-70,1"),
    "unshuffle2d": Case(
        "rows: 2,0,1; cols: 1,2,0",
        "cols: 1,2,0\nrows: 2,0,1",
        "[2, 0, 1] and [1, 2, 0]",
        "rows: 1,2,0; cols: 2,0,1",
        "rows: 2,0; cols: 1,1,2,0",
    ),
    "jigsaw": Case("2,0,3,1", "[2 0 3 1]", "2,0,3,1", "0,2,3,1", "2,0,3"),
    "rotated_jigsaw": Case("2:1,0:3,3:0,1:2", "(2,1) (0,3) (3,0) (1,2)", "2:1,0:3,3:0,1:2",
                           "2:1,0:3,3:0,1:1", "2:1,0:3,3:0"),
    "restore_then_measure": Case("31.4", "31.9 %", "32.9", "32.91", "31.4, 2"),
    "ring_rotor": Case("2,357", "angle: 359, ring: 2", "2,2", "2,2.01", "2"),
    "double_exposure": Case("-40,25", "-38, 26", "-48,33", "-40,33.1", "-40", "wrong"),
    "grating_period": Case("17.3", "about 17 px", "18.8", "15.79", "17.3 19"),
    "anomaly_v2": Case("(0,1),(2,3)", "(2,3),(0,1),(0,1)", "0,1;2,3", "(0,1),(3,2)", "(0,1),(2"),
    "peak_count": Case("14", "**14**", "14", "13", "14 15"),
    "congruent_pair": Case("3,7", "image: 3, image_2: 7", "3,7", "7,3", "3"),
    "trace_length": Case("4.37", "4.4", "4.67", "4.05", "4.37, 874"),
    "scan_moire": Case("1.034", "1.035", "1.038", "1.0381", "1.034, 1"),
    "crop_provenance": Case(
        "100,200,300,400", "[105, 195, 310, 405]", "100,200,300,300", "100,200,300,299.9", "100,200"
    ),
    "brightest_blob": Case("240,131", "x=241, y=130", "242,133", "242.1,131", "240"),
    "sub_rect_swap": Case(
        "0,0,100,100; 500,500,700,700",
        "500,500,700,690 and 0,0,100,98",
        "500,500,700,600; 0,0,100,50",
        "0,0,100,49; 500,500,700,700",
        "0,0,100,100",
    ),
    "retouch_region": Case(
        "100,200,300,400", "x2=300,y2=400,x1=100,y1=200", "100,200,500,400", "100,200,501,400",
        "1,2,3,4,5",
    ),
    "circle_fit": Case("201.5,96.25", "(202, 97)", "205.5,92.25", "205.51,96.25", "201.5"),
    "print_misreg": Case("-1.3,0.7", "dx = -1.2, dy = 0.8", "-1.0,1.0", "-1.3,1.01", "-1.3"),
    "gain_center": Case("100,120; 300,50", "(110,118), (299,52)", "115,105; 315,35",
                        "300,50; 100,120", "100,120; 300"),
    "film_color": Case("200,30,120", "#c81e78", "210,20,130", "211,30,120", "200,30"),
    "swatch_rgb": Case("12,34,56", "rgb(14, 30, 60)", "22,44,46", "12,34,66.5", "rgba(12,34,56,1)"),
    "patch_mean_dots": Case("90,91,92", "B: 92, G: 91, R: 90", "100,81,102", "79,91,92", "90"),
    "color_count": Case("7", "7 colours", "7", "8", "7/8"),
    "channel_mix": Case("128,64,32", "R=130, G=60, B=32", "136,56,40", "136.5,64,32", "128,64"),
}  # fmt: skip


def test_the_table_is_whole() -> None:
    assert set(TABLE) == set(RULES)
    assert len(TABLE) == 30
    assert {rule.group for rule in RULES.values()} == {
        "transformation",
        "perception",
        "localization",
        "colour",
    }


@pytest.mark.parametrize("task", TABLE)
def test_task(task: str) -> None:
    case = TABLE[task]
    tried = {
        case.gold: "correct",
        case.inside: "correct",
        case.edge: "correct",
        case.outside: "wrong",
        case.arity: case.arity_outcome,
        "": "unparsed",
        "unknown": "unparsed",
        "nan, inf": "unparsed",
    }
    for span, outcome in tried.items():
        got = score_response("cwi", task, case.gold, f"so <answer>{span}</answer>")
        assert (got.outcome, got.value) == (outcome, int(outcome == "correct")), (span, got)
        assert (got.answer is None) == (outcome == "unparsed")
        assert got.reason
    assert score_response("cwi", task, case.gold, f"It is {case.gold}.").outcome == "no_span"


@pytest.mark.parametrize("task", TABLE)
def test_canonical_form_is_read_again(task: str) -> None:
    canonical = score(task, TABLE[task].gold, TABLE[task].inside).answer
    assert canonical is not None
    assert score(task, TABLE[task].gold, canonical).answer == canonical
    assert score(task, TABLE[task].gold, canonical).value == 1


@pytest.mark.parametrize("task", [task for task, rule in RULES.items() if rule.choice])
def test_open_choices_show(task: str) -> None:
    assert RULES[task].choice in score(task, TABLE[task].gold, TABLE[task].outside).reason


@pytest.mark.parametrize("task", TABLE)
def test_rule_in_words(task: str) -> None:
    assert describe(task)


@pytest.mark.parametrize(
    ("tolerance", "task"), [(5, "rot_scale"), (4, "scan_moire"), (30, "print_misreg")]
)
def test_boundaries_hold_for_every_last_digit(tolerance: int, task: str) -> None:
    # With binary floats about half of these answers fall outside.
    places = {"rot_scale": 2, "scan_moire": 3, "print_misreg": 2}[task]
    for step in range(60, 160):
        values = [f"{number / 10**places:.{places}f}" for number in (step, step + tolerance)]
        gold, answer, far = (
            f"10,{value}"
            if task == "rot_scale"
            else f"{value},0"
            if task == "print_misreg"
            else value
            for value in (*values, values[1] + "0001")
        )
        assert score(task, gold, answer).value == 1
        assert score(task, gold, far).value == 0


def test_a_length_in_pixels_is_divided() -> None:
    assert score("trace_length", "874", "934").value == 1
    assert score("trace_length", "874", "934.1").value == 0
    assert score("trace_length", "874", "4.37").outcome == "wrong"


def test_boxes() -> None:
    assert score("crop_provenance", "0,0,10,10", "10,10,0,0").outcome == "wrong"
    assert score("crop_provenance", "0,0,10,10", "20,20,30,30").outcome == "wrong"
    # One box answers for one gold only.
    both = "0,0,100,100; 10,10,110,110"
    assert score("sub_rect_swap", both, "0,0,100,100; 0,0,100,100").value == 1
    far = "0,0,100,100; 500,500,600,600"
    assert score("sub_rect_swap", far, "0,0,100,100; 0,0,100,100").value == 0


def test_groups_are_counted() -> None:
    assert score("gain_center", "1,2; 3,4", "1,2").outcome == "wrong"
    assert score("anomaly_v2", "(0,1),(2,3)", "(0,1)").outcome == "wrong"
    assert score("anomaly_v2", "(0,1),(2,3)", "0,1,2").outcome == "unparsed"


@pytest.mark.parametrize(
    ("task", "gold"),
    [
        ("circular_shift", "12"),
        ("circular_shift", ""),
        ("peak_count", "12.5"),
        ("crop_provenance", "10,10,5,20"),
        ("anomaly_v2", "none"),
    ],
)
def test_bad_gold_is_refused(task: str, gold: str) -> None:
    with pytest.raises(GoldError, match=task):
        score(task, gold, "1,2")


def test_unknown_task() -> None:
    with pytest.raises(BenchmarkError, match="circular_shif"):
        score("circular_shif", "1,2", "1,2")


@pytest.mark.parametrize(
    "huge", ["1e999999999999999999999", "9" * 50_000, "-1e-99999999", "0e9999"]
)
@pytest.mark.parametrize("task", TABLE)
def test_numbers_beyond_reach_are_quick(task: str, huge: str) -> None:
    numbers = TABLE[task].gold.replace(":", ",").replace(";", ",").count(",") + 1
    got = score(task, TABLE[task].gold, " ".join([huge] * numbers))
    assert got.outcome in ("wrong", "unparsed")


@given(st.sampled_from(sorted(TABLE)), st.text(max_size=80))
def test_any_span_has_a_score(task: str, span: str) -> None:
    got = score(task, TABLE[task].gold, span)
    assert got.outcome in ("correct", "wrong", "unparsed")
    assert got == score(task, TABLE[task].gold, span)
