"""Scores a run's records again: pure, from what is on disk, without model or sandbox."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.files import write_whole
from agent.record import outcome
from agent.rundir import Key, RunDir
from agent.stats import Item, Row, row, summary
from agent.trajectory import Failure, Result
from benchmarks.errors import BenchmarkError
from benchmarks.registry import score_span


@dataclasses.dataclass(frozen=True, slots=True)
class Rescored:
    """What a rescoring found."""

    run: RunDir
    owed: Sequence[Item]
    rows: Mapping[Key, Row]
    changed: tuple[str, ...]
    """`<id> <repeat>: <old outcome> → <new outcome>`, a line each."""
    summary: Mapping[str, Any]


def rescore(path: Path) -> Rescored:
    """Scores every record that has a trajectory, writes those that changed and `summary.json`.

    A record is replaced by rename. What endpoint or host failed stays failed.

    Raises:
        ConfigError, RunDirError: not a run directory, in use, or a record cannot be read.
    """
    run = RunDir.open(path)
    with run.lock():
        benchmark = run.read_config().benchmark
        changed: list[str] = []
        rows: dict[Key, Row] = {}
        for old in run.results():
            new = scored_again(benchmark, old)
            if new != old:
                _replace(run, new)
                changed.append(f"{old.id} {old.repeat}: {outcome(old)} → {outcome(new)}")
            rows[new.id, new.repeat] = row(new)
        owed = run.read_owed()
        whole = summary(owed, rows)
        run.write_json("summary.json", whole)
        return Rescored(run, owed, rows, tuple(changed), whole)


def scored_again(benchmark: str, result: Result) -> Result:
    """The same result with the score that its answer has now."""
    scoreable = result.failure is None or result.failure.kind == "scorer"
    if result.trajectory is None or not scoreable:
        return result
    try:
        score = score_span(
            benchmark, result.task, result.target, result.trajectory.answer, result.meta
        )
    except BenchmarkError as error:
        return dataclasses.replace(result, score=None, failure=Failure("scorer", str(error)))
    return dataclasses.replace(result, score=score, failure=None)


def _replace(run: RunDir, result: Result) -> None:
    """Changes only what scoring says; the transcript stays as it was written."""
    path = run.record_path((result.id, result.repeat))
    record: dict[str, Any] = json.loads(path.read_bytes())
    record["outcome"] = outcome(result)
    record["score"] = dataclasses.asdict(result.score) if result.score else None
    record["failure"] = dataclasses.asdict(result.failure) if result.failure else None
    text = json.dumps(record, ensure_ascii=False, indent=1) + "\n"
    write_whole(path, text.encode("utf-8", "replace"))
