"""Accounting invariants, and intervals against scipy."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.stats import Item, Row, count, items, row, summary, wilson
from agent.trajectory import FailureKind
from benchmarks.sample import Sample
from tests.runs.results import failed, result

BASE = row(result())
KINDS: list[FailureKind] = ["model_api", "sandbox_host", "input", "scorer", "bug"]


def scored(value: int | None, answered: bool) -> Row:
    return dataclasses.replace(BASE, value=value, answered=answered)


def lost(kind: FailureKind) -> Row:
    return dataclasses.replace(BASE, value=None, failure=kind)


ROWS = st.one_of(
    st.builds(scored, st.sampled_from([0, 1, None]), st.booleans()),
    st.builds(lost, st.sampled_from(KINDS)),
    st.none(),
)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), ROWS)))
def test_every_owed_sample_is_counted_once(course: list[tuple[str, Row | None]]) -> None:
    owed = [Item(str(n), 0, task, "g", "easy") for n, (task, _) in enumerate(course)]
    rows = {(str(n), 0): dataclasses.replace(r, id=str(n)) for n, (_, r) in enumerate(course) if r}
    whole = summary(owed, rows)
    for part in [whole, *whole["by_task"].values(), *whole["by_difficulty"].values()]:
        failures = sum(part["failed"].values())
        assert part["scored"] + part["unscored"] + failures + part["pending"] == part["owed"]
        assert part["correct"] <= part["scored"]
        assert part["unanswered"] <= part["scored"]
        if part["scored"]:
            low, high = part["interval"]
            assert 0 <= low <= part["accuracy"] <= high <= 1
            assert part["bounds"][0] <= part["accuracy"] <= part["bounds"][1]
    for name in ("owed", "scored", "correct", "unanswered", "unscored", "pending"):
        assert sum(part[name] for part in whole["by_task"].values()) == whole[name]


@pytest.mark.parametrize(
    ("correct", "scored"), [(0, 1), (1, 1), (0, 300), (7, 10), (299, 300), (300, 300), (1, 10_000)]
)
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_wilson_is_scipys(correct: int, scored: int, level: float) -> None:
    from scipy.stats import binomtest

    found = binomtest(correct, scored).proportion_ci(level, "wilson")
    low, high = wilson(correct, scored, level)
    assert low == pytest.approx(float(found.low), abs=1e-12)
    assert high == pytest.approx(float(found.high), abs=1e-12)


def test_summary_has_the_published_shape() -> None:
    samples = [Sample(str(n), "cwi", "t", "p", (), "12, 7", "g", "easy") for n in range(3)]
    owed = items(samples, 2)
    assert [(i.id, i.repeat) for i in owed[:4]] == [("0", 0), ("1", 0), ("2", 0), ("0", 1)]
    found = [result("0"), result("1", value=0, answer=None), failed("2"), result("0", 1, None)]
    rows = {(r.id, r.repeat): row(r) for r in found}
    whole = summary([*owed, Item("0", 2, "u", "h", "hard")], rows)
    assert {k: whole[k] for k in ("owed", "scored", "correct", "unanswered", "unscored")} == {
        **{"owed": 7, "scored": 2, "correct": 1, "unanswered": 1, "unscored": 1},
    }
    assert whole["failed"] == {"model_api": 1}
    assert whole["pending"] == 3
    assert whole["accuracy"] == 0.5
    assert whole["bounds"] == [1 / 7, 6 / 7]
    assert list(whole["by_task"]) == ["t", "u"]
    assert whole["by_task"]["u"]["accuracy"] is None
    assert whole["by_task"]["u"]["interval"] is None
    assert whole["stops"] == {"answered": 2, "max_turns": 1}
    assert whole["tokens"] == {"prompt": 30, "completion": 15, "estimated": True}


def test_nothing_owed_is_no_accuracy() -> None:
    assert count([], {}).to_json()["bounds"] is None
