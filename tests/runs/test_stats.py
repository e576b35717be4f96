"""Accounting invariants, and intervals against scipy."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.stats import (
    Item,
    Row,
    count,
    effective_size,
    items,
    reasons,
    row,
    summary,
    wilson,
)
from agent.table import why_lost
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
    low, high = wilson(correct / scored, scored, level)
    assert low == pytest.approx(float(found.low), abs=1e-12)
    assert high == pytest.approx(float(found.high), abs=1e-12)


SAMPLES = st.lists(st.lists(st.sampled_from([0, 1]), max_size=5), min_size=1, max_size=12)


@given(SAMPLES)
def test_repeats_are_worth_between_one_answer_a_sample_and_one_each(
    samples: list[list[int]],
) -> None:
    scored = [scores for scores in samples if scores]
    size = effective_size(samples)
    assert len(scored) <= size <= max(sum(map(len, scored)), 0)


@pytest.mark.parametrize("repeats", [1, 2, 8])
def test_repeats_that_always_agree_change_no_interval(repeats: int) -> None:
    samples = [[value] * repeats for value in [0, 1, 1, 0, 1, 1, 1]]
    assert effective_size(samples) == 7


def test_one_sample_repeated_is_one_answer() -> None:
    assert effective_size([[0, 1, 1, 0, 1, 1, 1, 0]]) == 1
    assert effective_size([]) == 0


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """60 samples, some hard, some easy, 8 repeats each: repeats taken for independent answers
    would give intervals that miss the truth in every third benchmark."""
    dice, kept, naive, rounds = random.Random(5), 0, 0, 400
    for _ in range(rounds):
        samples: list[list[int]] = []
        for _ in range(60):
            chance = dice.choice([0.1, 0.9])
            samples.append([int(dice.random() < chance) for _ in range(8)])
        rate = sum(map(sum, samples)) / 480
        low, high = wilson(rate, effective_size(samples))
        kept += low <= 0.5 <= high
        low, high = wilson(rate, 480)
        naive += low <= 0.5 <= high
    assert 0.92 <= kept / rounds <= 0.99
    assert naive / rounds < 0.75


def test_summarys_interval_takes_repeats_together() -> None:
    samples = [Sample(str(n), "cwi", "t", "p", (), "12, 7", "g", "easy") for n in range(10)]
    for repeats in (1, 5):
        owed = items(samples, repeats)
        rows = {(i.id, i.repeat): scored(int(i.id < "7"), True) for i in owed}
        rows = {key: dataclasses.replace(r, id=key[0]) for key, r in rows.items()}
        whole = summary(owed, rows)
        assert (whole["scored"], whole["accuracy"]) == (10 * repeats, 0.7)
        assert whole["interval"] == pytest.approx(list(wilson(0.7, 10)))


def test_the_reasons_of_failures_by_kind_in_the_order_of_what_is_owed() -> None:
    owed = [Item(str(n), 0, "t", "g", "easy") for n in range(5)]
    said: list[tuple[FailureKind, str]] = [
        ("model_api", "HTTP 400: no"), ("input", "torn\x1b"), ("model_api", "HTTP 500"),
        ("model_api", "HTTP 400: no"),
    ]  # fmt: skip
    rows = {
        (str(n), 0): dataclasses.replace(lost(kind), id=str(n), why=why)
        for n, (kind, why) in enumerate(said)
    }
    assert reasons(owed, rows) == {"model_api": ["HTTP 400: no", "HTTP 500"], "input": ["torn\x1b"]}
    assert why_lost(owed, rows) == [
        "input: torn\\x1b",
        "model_api: HTTP 400: no (and 1 other message)",
    ]


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
