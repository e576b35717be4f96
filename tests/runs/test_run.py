"""Owed items become records: faults at the sample boundary, stops, resume, interruption."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.errors import InputProblem
from agent.messages import Reply, Request
from agent.models.errors import AccessRefused, ModelRefused, ModelUnavailable
from agent.plan import Plan
from agent.run import Finished, execute
from agent.rundir import Key, RunDir
from agent.stats import Row, items, row
from benchmarks.errors import GoldError
from sandbox.closing import to_the_end
from sandbox.errors import BoxLost, InputRefused
from sandbox.spec import InputFile
from tests.runs.standins import Answering, EchoBox, Log, echo_box, plan

RIGHT = "<answer>10,20,30</answer>"


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir.create(tmp_path / "run")
    made.write_json("config.json", {})
    return made


def go(
    made: Plan, run: RunDir, rows: dict[Key, Row] | None = None, log: Log | None = None
) -> Finished:
    owed = items(list(made.samples.values()), made.config.repeats)
    return asyncio.run(execute(made, run, owed, {} if rows is None else rows, log or Log()))


def on_disk(run: RunDir) -> dict[Key, Row]:
    return {(r.id, r.repeat): row(r) for r in run.results()}


def test_all_right(run: RunDir) -> None:
    log = Log()
    finished = go(plan(Answering(lambda _: RIGHT)), run, log=log)
    assert finished.exit_code == 0
    assert finished.summary["correct"] == finished.summary["owed"] == 6
    assert finished.summary["tokens"] == {"prompt": 1200, "completion": 84, "estimated": False}
    assert on_disk(run) == finished.rows
    assert {r.id for r in log.rows} == {item.id for item in finished.owed}
    assert run.read_json("summary.json") == finished.summary
    record = next(run.results(pictures=True))
    assert record.seconds == pytest.approx(0.5 + 0.25 + 0.5)
    assert record.trajectory
    assert record.trajectory.turns[0].executions[0].text == "ran print(1)"
    assert record.seed == plan(Answering(lambda _: "")).config.sample_seed(record.id, 0)


def test_an_answer_missing_is_a_result_and_wrong(run: RunDir) -> None:
    finished = go(plan(Answering(lambda _: "I give up.")), run)
    assert finished.exit_code == 0
    assert finished.summary["scored"] == finished.summary["unanswered"] == 6
    assert finished.summary["correct"] == 0
    again = Answering(lambda _: RIGHT)
    go(plan(again), run, dict(finished.rows))
    assert again.requests == [], "nothing is owed"


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ModelRefused("400 bad picture"), "model_api", 1),
        (InputProblem("image_1.png: damaged"), "input", 1),
        (InputRefused("two files of one name"), "input", 1),
        (BoxLost("daemon gone"), "sandbox_host", 1),
        (GoldError("not a colour"), "scorer", 1),
        (ValueError("who wrote this?"), "bug", 1),
        (ModelUnavailable("502 for ten minutes"), "model_api", 1),
    ],
)
def test_a_fault_is_that_samples_failure_and_owed_again(
    run: RunDir, error: Exception, kind: str, code: int
) -> None:
    bad = "swatch_rgb/test/3"

    def answer(request: Request) -> str | Exception:
        return error if request.sample_id == bad else RIGHT

    log = Log()
    finished = go(plan(Answering(answer)), run, log=log)
    assert finished.exit_code == code
    assert finished.summary["scored"] == finished.summary["correct"] == 5
    assert finished.summary["failed"] == {kind: 1}
    assert ("BUG" in " ".join(log.notes)) == (kind == "bug")
    if kind == "bug":
        assert "ValueError: who wrote this?" in log.notes[-1]
        assert "Traceback" in log.notes[-1]
    model = Answering(lambda _: RIGHT)
    resumed = go(plan(model), run, on_disk(run))
    assert {request.sample_id for request in model.requests} == {bad}
    assert resumed.exit_code == 0
    assert resumed.summary["correct"] == 6
    assert len(list((run.path / "attempts").iterdir())) == 1


def test_a_box_lost_by_the_host_is_opened_again(run: RunDir) -> None:
    opened = 0

    @asynccontextmanager
    async def flaky(files: Sequence[InputFile], seed: int) -> AsyncGenerator[EchoBox]:
        nonlocal opened
        opened += 1
        if opened % 3:
            raise BoxLost("container removed by someone")
        async with echo_box(files, seed) as box:
            yield box

    log = Log()
    finished = go(plan(Answering(lambda _: RIGHT), count=2, workers=1, opened=flaky), run, log=log)
    assert finished.summary["correct"] == 2
    assert opened == 6
    assert sum("trying again in a new box" in note for note in log.notes) == 4


def test_a_refused_key_stops_the_run_before_anything_is_recorded(run: RunDir) -> None:
    model = Answering(lambda _: AccessRefused("401 no such key"))
    finished = go(plan(model, count=50, workers=2), run)
    assert finished.stopped == "401 no such key"
    assert finished.exit_code == 3
    assert on_disk(run) == {}
    assert len(model.requests) <= 4
    assert finished.summary["pending"] == 50


def test_an_endpoint_that_never_answered_stops_the_run(run: RunDir) -> None:
    class Dead(Answering):
        async def reply(self, request: Request) -> Reply:
            self.requests.append(request)
            raise ModelUnavailable("connection refused; is the server running?")

    model = Dead(lambda _: "")
    finished = go(plan(model, count=50, workers=2), run)
    assert finished.exit_code == 3
    assert finished.stopped
    assert "is the server running" in finished.stopped
    assert len(model.requests) <= 2


def test_an_endpoint_that_goes_away_stops_the_run_resumably(run: RunDir) -> None:
    def answer(request: Request) -> str | Exception:
        late = int(request.sample_id.rpartition("/")[2]) >= 10
        return ModelUnavailable("503 for ten minutes") if late else RIGHT

    model = Answering(answer)
    finished = go(plan(model, count=100, workers=2), run)
    assert finished.stopped
    assert "503 for ten minutes" in finished.stopped
    assert finished.exit_code == 1
    summary = finished.summary
    assert summary["correct"] == 10
    assert 6 <= summary["failed"]["model_api"] <= 8
    assert summary["pending"] == 100 - 10 - summary["failed"]["model_api"]
    done = go(plan(Answering(lambda _: RIGHT), count=100), run, on_disk(run))
    assert done.summary["correct"] == 100


def test_a_full_disk_stops_the_run(run: RunDir) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    finished = go(plan(Answering(lambda _: full), count=50), run)
    assert finished.stopped
    assert "No space left" in finished.stopped
    assert on_disk(run) == {}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(run: RunDir, number: signal.Signals, times: int) -> None:
    opened: list[int] = []
    closed: list[int] = []
    signalled: list[int] = []

    async def close(seed: int) -> None:
        await asyncio.sleep(0.05)
        closed.append(seed)

    @asynccontextmanager
    async def watched(files: Sequence[InputFile], seed: int) -> AsyncGenerator[EchoBox]:
        async with echo_box(files, seed) as box:
            opened.append(seed)
            try:
                yield box
            finally:
                if times == 2 and signalled:
                    os.kill(os.getpid(), number)  # impatience does not cut the closing short
                await to_the_end(close(seed))

    class Slow(Answering):
        async def reply(self, request: Request) -> Reply:
            found = await super().reply(request)
            if request.sample_id.endswith("/4"):
                signalled.append(number)
                os.kill(os.getpid(), number)
                await asyncio.sleep(30)
            return found

    finished = go(plan(Slow(lambda _: RIGHT), count=50, workers=2, opened=watched), run)
    assert finished.interrupted
    assert finished.exit_code == 130
    assert on_disk(run) == finished.rows
    assert 3 <= finished.summary["correct"] < 50
    assert finished.summary["pending"] == 50 - finished.summary["correct"]
    assert sorted(closed) == sorted(opened)


def test_repeats_are_separate_records(run: RunDir) -> None:
    made = plan(Answering(lambda r: RIGHT if r.repeat else "<answer>0,0,0</answer>"), count=3)
    owed = items(list(made.samples.values()), 2)
    finished = asyncio.run(execute(made, run, owed, {}, Log()))
    assert finished.summary["owed"] == 6
    assert finished.summary["correct"] == 3
    assert len({r.seed for r in run.results()}) == 6
