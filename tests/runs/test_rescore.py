"""Scoring again from the records alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from agent.errors import ConfigError, RunDirError
from agent.rescore import rescore
from agent.rundir import RunDir
from agent.stats import Item
from agent.trajectory import Failure, Result
from benchmarks.sample import Score
from tests.runs.results import failed, result

GOLD = "10,20,30"


def colour(sample_id: str, answer: str | None, kept: Score | None, why: Failure | None) -> Result:
    made = result(sample_id, answer=answer, task="swatch_rgb")
    return dataclasses.replace(made, target=GOLD, score=kept, failure=why)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir.create(tmp_path / "run")
    run.write_json("config.json", {"config": {"benchmark": "cwi"}})
    outdated = Score(0, "wrong", "10,20,30", "an older rule")
    results = [
        colour("a", GOLD, Score(1, "correct", GOLD, "within 10 inclusive"), None),
        colour("b", GOLD, outdated, None),
        colour("c", "red", None, Failure("scorer", "the rule was broken")),
        failed("d", task="swatch_rgb"),
        colour("e", None, outdated, None),
    ]
    for one in results:
        run.write(one)
    run.write_owed([Item(r.id, 0, r.task, r.group, r.difficulty) for r in results])
    return run


def test_what_changed_is_written_and_nothing_else(run: RunDir) -> None:
    before = {path.name: path.read_bytes() for path in run.samples.iterdir()}
    done = rescore(run.path)
    assert done.changed[0] == "b 0: wrong → correct"
    assert {line.split()[0] for line in done.changed} >= {"b", "c", "e"}
    after = {r.id: r for r in run.results(pictures=True)}
    assert after["b"].score == after["a"].score
    assert after["c"].score
    assert after["c"].score.outcome == "unparsed"
    assert after["c"].failure is None
    assert after["d"].failure
    assert after["e"].score
    assert after["e"].score.outcome == "no_span"
    assert done.summary["scored"] == 4
    assert done.summary["correct"] == 2
    assert done.summary["unanswered"] == 1
    assert run.read_json("summary.json") == done.summary
    assert (run.samples / "d.0.json").read_bytes() == before["d.0.json"]
    old, new = json.loads(before["b.0.json"]), json.loads((run.samples / "b.0.json").read_text())
    assert {key for key in old if old[key] != new[key]} == {"outcome", "score"}
    assert rescore(run.path).changed == ()


def test_a_run_in_use_or_damaged_is_refused(run: RunDir) -> None:
    with run.lock(), pytest.raises(RunDirError, match="in use"):
        rescore(run.path)
    (run.samples / "z.0.json").write_text("{")
    with pytest.raises(RunDirError, match=r"z\.0\.json"):
        rescore(run.path)
    run.write_json("config.json", {"config": {"benchmark": "cwi", "max_turn": 1}})
    with pytest.raises(ConfigError, match="did you mean max_turns"):
        rescore(run.path)
