"""Runs a benchmark: what is owed minus what is on disk, many samples at a time.

Every fault ends at the sample boundary (`_Runner.attempt`) as a `Failure` in that sample's record;
a few end the whole run, which can then be resumed. A record is on disk before it is counted.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.errors import InputProblem, RunDirError
from agent.files import is_full
from agent.loop import run_sample
from agent.messages import Reply
from agent.models.errors import AccessRefused, ModelError, ModelUnavailable
from agent.plan import Plan
from agent.pool import StopRun, work_off
from agent.progress import Watcher
from agent.rundir import Key, RunDir
from agent.signals import Interrupted, until_signal
from agent.stats import Item, Row, row, summary
from agent.trajectory import Failure, Result, Trajectory
from benchmarks.errors import BenchmarkError
from benchmarks.registry import score_span
from benchmarks.sample import Sample, Score
from sandbox.closing import to_the_end
from sandbox.errors import InputRefused, SandboxError
from sandbox.outputs import Execution

HOST_TRIES = 5
"""Boxes that a sample gets when the host, not the model, breaks them; with the pauses between them
an engine has a quarter of a minute to restart."""
LEAST_STREAK = 6
"""A run stops when so many samples in a row failed, or twice as many as it has workers."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a run (or a part of it) ended."""

    run: RunDir
    owed: Sequence[Item]
    rows: Mapping[Key, Row]
    summary: Mapping[str, Any]
    interrupted: bool = False
    stopped: str | None = None
    """Why it ended early, one line."""

    @property
    def exit_code(self) -> int:
        """0; 1 something owed has no score, or a bug; 3 nothing could run; 130 interrupted."""
        if self.interrupted:
            return 130
        whole = self.summary
        if whole["failed"].get("bug"):
            return 1
        if not whole["scored"] and not whole["unscored"]:
            return 3
        return 1 if self.stopped or whole["scored"] != whole["owed"] else 0


async def execute(
    plan: Plan,
    run: RunDir,
    owed: Sequence[Item],
    rows: dict[Key, Row],
    watcher: Watcher,
    anew: frozenset[Key] = frozenset(),
) -> Finished:
    """Runs what of `owed` has no row or a failed one, and `anew`; then writes `summary.json`.

    The caller holds the run's lock. Ctrl-C and SIGTERM end it cleanly: boxes are closed, and what
    was finished is on disk.
    """
    runner = _Runner(plan, run, rows, watcher)
    todo = [item for item in owed if is_owed(item, rows) or (item.id, item.repeat) in anew]
    stopped: str | None = None
    interrupted = False
    try:
        stopped = await until_signal(work_off(todo, runner.work, plan.config.workers))
    except Interrupted:
        interrupted = True
    whole = summary(owed, rows)
    try:
        run.write_json("summary.json", whole)
    except RunDirError as lost:
        stopped = str(lost)
    return Finished(run, owed, rows, whole, interrupted, stopped)


def is_owed(item: Item, rows: Mapping[Key, Row]) -> bool:
    """A failed sample is owed again; one that ended without an answer is a result."""
    found = rows.get((item.id, item.repeat))
    return found is None or found.failure is not None


class _Runner:
    """Turns owed items into records."""

    def __init__(self, plan: Plan, run: RunDir, rows: dict[Key, Row], watcher: Watcher) -> None:
        self.plan = plan
        self.run = run
        self.rows = rows
        self.watcher = watcher
        self.answered = False
        """Whether the model has given any reply; if not, it is probably not there."""
        self.streak = 0
        """Samples in a row that endpoint or host made fail."""

    async def work(self, item: Item) -> None:
        """One item, to its record.

        Raises:
            StopRun: going on makes no sense: disk full, key refused, nothing works any more.
        """
        result = await self.attempt(item)
        await to_the_end(self._keep(result))
        failure = result.failure
        self.streak = self.streak + 1 if _is_outside(failure) else 0
        if failure and self.streak >= max(LEAST_STREAK, 2 * self.plan.config.workers):
            raise StopRun(f"{self.streak} samples in a row failed, the last by: {failure.message}")

    async def attempt(self, item: Item) -> Result:
        """The sample boundary: what comes out of it is a result, or the end of the run."""
        sample = self.plan.samples[item.id]
        trajectory: Trajectory | None = None
        score: Score | None = None
        failure: Failure | None = None
        try:
            trajectory = await self._in_new_boxes(sample, item.repeat)
            score = _score(sample, trajectory)
        except StopRun:
            raise
        except Exception as error:  # noqa: BLE001 - the one place: a bug in one sample is a record
            failure = self._failure(error, item)
        return Result(
            id=sample.id,
            repeat=item.repeat,
            task=sample.task,
            group=sample.group,
            difficulty=sample.difficulty,
            target=sample.target,
            trajectory=trajectory,
            score=score,
            failure=failure,
            seconds=seconds(trajectory) if trajectory else 0.0,
            seed=self.plan.config.sample_seed(sample.id, item.repeat),
            choices=sample.choices,
            meta=sample.meta,
        )

    async def _in_new_boxes(self, sample: Sample, repeat: int) -> Trajectory:
        """The trajectory; when the host loses the box, again in a new one (replies are cached)."""
        for tries_left in reversed(range(HOST_TRIES)):
            try:
                return await self._once(sample, repeat)
            except InputRefused:
                raise
            except SandboxError as error:
                if not tries_left:
                    raise
                self.watcher.note(f"{sample.id}: {one_line(error)}; trying again in a new box")
                await asyncio.sleep(self.plan.pause * 2 ** (HOST_TRIES - 1 - tries_left))
        raise AssertionError("the last try returns or raises")

    async def _once(self, sample: Sample, repeat: int) -> Trajectory:
        plan = self.plan
        return await run_sample(
            sample,
            plan.model,
            plan.opener(sample.id, repeat),
            plan.dialect,
            plan.config,
            watch=self._heard,
            repeat=repeat,
        )

    def _heard(self, what: Reply | Execution) -> None:
        self.answered = self.answered or isinstance(what, Reply)

    async def _keep(self, result: Result) -> None:
        try:
            await asyncio.to_thread(self.run.write, result)
        except RunDirError as lost:
            raise StopRun(str(lost)) from lost
        self.rows[result.id, result.repeat] = kept = row(result)
        self.watcher.done(kept)

    def _failure(self, error: Exception, item: Item) -> Failure:
        """The kind of a fault, or StopRun for one that all samples share."""
        text = one_line(error)
        never_answered = isinstance(error, ModelUnavailable) and not self.answered
        if never_answered or isinstance(error, AccessRefused | RunDirError) or _is_full(error):
            raise StopRun(text) from error
        if isinstance(error, ModelError):
            return Failure("model_api", text)
        if isinstance(error, InputProblem | InputRefused):
            return Failure("input", text)
        if isinstance(error, SandboxError):
            return Failure("sandbox_host", text)
        if isinstance(error, BenchmarkError):
            return Failure("scorer", text)
        self.watcher.note(f"BUG in {item.id} (repeat {item.repeat}); please report this:")
        self.watcher.note("".join(traceback.format_exception(error)).rstrip())
        return Failure("bug", f"{type(error).__name__}: {text}")


def seconds(trajectory: Trajectory) -> float:
    """Model thinking and cells: what the time limit counts."""
    thinking = sum(turn.reply.seconds for turn in trajectory.turns)
    return thinking + sum(e.seconds for turn in trajectory.turns for e in turn.executions)


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _score(sample: Sample, trajectory: Trajectory) -> Score:
    return score_span(sample.benchmark, sample.task, sample.target, trajectory.answer, sample.meta)


def _is_outside(failure: Failure | None) -> bool:
    return failure is not None and failure.kind in ("model_api", "sandbox_host")


def _is_full(error: Exception) -> bool:
    return isinstance(error, OSError) and is_full(error)
