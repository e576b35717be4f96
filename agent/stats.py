"""The accounting of a run and its accuracy with intervals.

Every owed sample is counted once: `scored + unscored + failed + pending == owed`, and nothing is
pending when a run has finished. The headline is correct / scored; the bounds say where it could
lie if all that is missing were wrong, or right.

Intervals are Wilson's at 95 %. They take samples to be independent, but not the repeats of one:
those are taken together, and the variance between samples says how many independent answers they
are worth (`effective_size`). With one repeat that is the number of samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, cast

from agent.record import outcome
from agent.trajectory import FailureKind, Result, Stop
from benchmarks.sample import Sample

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Item:
    """One owed sample, before anything is known of it."""

    id: str
    repeat: int
    task: str
    group: str
    difficulty: str


@dataclass(frozen=True, slots=True)
class Row:
    """What statistics need of a result; small, so that a run of any size fits in memory."""

    id: str
    repeat: int
    outcome: str
    value: int | None
    answered: bool
    stop: Stop | None
    failure: FailureKind | None
    why: str
    """The failure's message."""
    turns: int
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    """Some of the tokens are our estimate, because the server sent no usage."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Count:
    """The accounting of a set of owed samples."""

    owed: int
    scored: int
    correct: int
    unanswered: int
    """Of the scored: runs that ended without an answer."""
    unscored: int
    failed: Mapping[str, int]
    pending: int
    effective: float
    """Independent answers that the scored are worth; `scored` where no sample was repeated."""

    @property
    def accuracy(self) -> float | None:
        return self.correct / self.scored if self.scored else None

    @property
    def interval(self) -> Interval | None:
        return wilson(self.correct / self.scored, self.effective) if self.scored else None

    @property
    def bounds(self) -> Interval | None:
        if not self.owed:
            return None
        missing = self.owed - self.scored
        return self.correct / self.owed, (self.correct + missing) / self.owed

    def to_json(self) -> dict[str, Any]:
        return {
            "owed": self.owed,
            "scored": self.scored,
            "correct": self.correct,
            "unanswered": self.unanswered,
            "unscored": self.unscored,
            "failed": dict(sorted(self.failed.items())),
            "pending": self.pending,
            "accuracy": self.accuracy,
            "interval": self.interval and list(self.interval),
            "bounds": self.bounds and list(self.bounds),
        }


def wilson(rate: float, size: float, level: float = 0.95) -> Interval:
    """Wilson's score interval for a proportion among `size` > 0 independent answers."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    scale = 1 + z * z / size
    centre = (rate + z * z / (2 * size)) / scale
    half = z / scale * math.sqrt(rate * (1 - rate) / size + z * z / (4 * size * size))
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return low, high


def effective_size(samples: Iterable[Sequence[int]]) -> float:
    """How many independent answers the scores (0 or 1) of some samples are worth, each sample being
    the scores of its repeats.

    With the accuracy p over all m scores, the variance of p is estimated between the n samples:
    n / (n - 1) · Σ (sum of a sample's scores - p · their number)² / m². A proportion of p (1 - p) /
    variance independent answers would have the same. Repeats that always agree are worth one,
    independent ones are worth themselves; the result is kept between n and m.
    """
    repeats = [scores for scores in samples if scores]
    n, m = len(repeats), sum(map(len, repeats))
    if n < 2 or n == m:
        return float(n)
    rate = sum(map(sum, repeats)) / m
    spread = sum((sum(scores) - rate * len(scores)) ** 2 for scores in repeats)
    if rate in (0, 1):
        return float(n)  # nothing is seen to vary: the repeats may be copies
    variance = n / (n - 1) * spread / m**2
    return float(m) if variance * m <= rate * (1 - rate) else max(n, rate * (1 - rate) / variance)


def items(samples: Sequence[Sample], repeats: int) -> list[Item]:
    """All that is owed, the first repeat of every sample before the second of any."""
    return [
        Item(s.id, repeat, s.task, s.group, s.difficulty)
        for repeat in range(repeats)
        for s in samples
    ]


def row(result: Result) -> Row:
    turns = result.trajectory.turns if result.trajectory else ()
    usages = [turn.reply.usage for turn in turns]
    return Row(
        id=result.id,
        repeat=result.repeat,
        outcome=outcome(result),
        value=result.score.value if result.score else None,
        answered=bool(result.trajectory and result.trajectory.answer is not None),
        stop=result.trajectory.stop if result.trajectory else None,
        failure=result.failure.kind if result.failure else None,
        why=result.failure.message if result.failure else "",
        turns=len(turns),
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        estimated=any(usage.estimated for usage in usages),
        seconds=result.seconds,
    )


def count(owed: Iterable[Item], rows: Mapping[tuple[str, int], Row]) -> Count:
    """The accounting of the owed; rows of anything else are not looked at."""
    owed = list(owed)
    found = [rows[key] for item in owed if (key := (item.id, item.repeat)) in rows]
    failed = Counter(r.failure for r in found if r.failure is not None)
    scored = [r for r in found if r.failure is None and r.value is not None]
    by_sample: dict[str, list[int]] = {}
    for r in scored:
        by_sample.setdefault(r.id, []).append(int(r.value == 1))
    return Count(
        owed=len(owed),
        scored=len(scored),
        correct=sum(r.value == 1 for r in scored),
        unanswered=sum(not r.answered for r in scored),
        unscored=len(found) - len(scored) - failed.total(),
        failed=cast("Mapping[str, int]", failed),
        pending=len(owed) - len(found),
        effective=effective_size(by_sample.values()),
    )


def reasons(owed: Iterable[Item], rows: Mapping[tuple[str, int], Row]) -> dict[str, list[str]]:
    """The different messages of each kind of failure, in the order in which samples are owed."""
    found: dict[str, list[str]] = {}
    for item in owed:
        lost = rows.get((item.id, item.repeat))
        if lost is not None and lost.failure is not None:
            messages = found.setdefault(lost.failure, [])
            if lost.why not in messages:
                messages.append(lost.why)
    return found


def by(
    key: Callable[[Item], str], owed: Sequence[Item], rows: Mapping[tuple[str, int], Row]
) -> dict[str, Count]:
    """The accounting for each value of `key`, in the order in which they first come."""
    parts: dict[str, list[Item]] = {}
    for item in owed:
        parts.setdefault(key(item), []).append(item)
    return {name: count(part, rows) for name, part in parts.items()}


def summary(owed: Sequence[Item], rows: Mapping[tuple[str, int], Row]) -> dict[str, Any]:
    """The object of `summary.json` and `pot run --json`. `accuracy` is correct / scored; `interval`
    is Wilson's at 95 %, with the repeats of a sample taken together (`effective_size`)."""
    found = [rows[key] for item in owed if (key := (item.id, item.repeat)) in rows]
    tables = {"by_task": _task, "by_group": _group, "by_difficulty": _difficulty}
    stops = Counter(r.stop for r in found if r.stop)
    return {
        **count(owed, rows).to_json(),
        **{
            name: {k: c.to_json() for k, c in by(key, owed, rows).items()}
            for name, key in tables.items()
        },
        "outcomes": dict(sorted(Counter(r.outcome for r in found).items())),
        "stops": {str(stop): n for stop, n in sorted(stops.items())},
        "tokens": {
            "prompt": sum(r.prompt_tokens for r in found),
            "completion": sum(r.completion_tokens for r in found),
            "estimated": any(r.estimated for r in found),
        },
        "turns": sum(r.turns for r in found),
        "seconds": round(sum(r.seconds for r in found), 3),
    }


def _task(item: Item) -> str:
    return item.task


def _group(item: Item) -> str:
    return item.group


def _difficulty(item: Item) -> str:
    return item.difficulty
