"""How runners of this kind have been seen to fail, each as a whole kind; the ids are the cases'."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from agent import dialects
from agent.cli import run as pot
from agent.config import RunConfig
from agent.messages import Image, Reply, Request, Usage
from agent.models.cache import Cached
from agent.models.errors import AccessRefused
from agent.models.listed import Listed
from agent.plan import OpenSeeded, Plan
from agent.prepare import opener
from agent.run import Finished, execute
from agent.rundir import Key, RunDir
from agent.stats import Row, items, row
from benchmarks import load
from benchmarks.sample import Picture, Sample
from sandbox.errors import BoxLost
from sandbox.outputs import Execution
from sandbox.spec import InputFile
from sandbox.wall import Wall
from tests.benchmarks.pictures import encoded, folder, with_chunk
from tests.benchmarks.pictures import row as data_row
from tests.runs.results import png
from tests.runs.standins import Answering, EchoBox, Log, echo_box, plan
from tests.runs.test_cli_run import POT, endpoint, looking, one_line
from tests.runs.test_rundir import HOSTILE, small_disk

RIGHT = "<answer>10,20,30</answer>"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    build = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "3", "--out", str(folder)]
    assert pot(build) == 0
    return folder


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir.create(tmp_path / "run")
    made.write_json("config.json", {})
    return made


def go(
    made: Plan,
    run: RunDir,
    rows: dict[Key, Row] | None = None,
    log: Log | None = None,
    anew: frozenset[Key] = frozenset(),
) -> Finished:
    owed = items(list(made.samples.values()), made.config.repeats)
    there = {} if rows is None else rows
    return asyncio.run(execute(made, run, owed, there, log or Log(), anew))


def on_disk(run: RunDir) -> dict[Key, Row]:
    return {(r.id, r.repeat): row(r) for r in run.results()}


# --- R05, R06: ids


IDS = [
    *(each for each in HOSTILE if "\ud800" not in each),
    *("-rf", "--out", " leading", "trailing ", "trailing.", "😀" * 40, "a\r\nb", "$(id)", "`id`"),
    *("${HOME}", "a;b", "a|b", "<b>", "{{x}}", "\u202e", "\x1b[31m", "lpt1", "aux.json"),
]
LEAST = ["../../etc/x", "a/b\n\0c", "😀 -v /:/host", "x" * 300, "", "CON"]


def with_ids(ids: Sequence[str]) -> dict[str, Sample]:
    picture = Picture("image_1.png", png())
    made = [Sample(i, "cwi", "swatch_rgb", "Which?", (picture,), "10,20,30") for i in ids]
    return {sample.id: sample for sample in made}


def test_r05_r06_any_id_has_a_record_of_its_own_inside_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Through the data file, HTTP, the records, a resume, scoring and the report."""
    rows = [data_row(number, id=each) for number, each in enumerate(IDS)]
    data, out = folder(tmp_path / "data", rows), tmp_path / "run"
    outside = sorted(path.name for path in tmp_path.iterdir())
    with endpoint("--data", str(data), "--model", "gold") as url:
        assert pot(looking(data, url, out, "--workers", "8", "--json")) == 0
    assert json.loads(capfd.readouterr().out)["correct"] == len(IDS)
    found = list(RunDir.open(out).results())
    assert sorted(each.id for each in found) == sorted(IDS)
    names = [path.name for path in (out / "samples").iterdir()]
    assert len({name.casefold() for name in names}) == len(IDS)
    assert not [name for name in names if not name.isascii() or not name.isprintable()]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*outside, "run"])
    assert pot(["run", "--resume", str(out)]) == 0
    assert pot(["score", str(out)]) == 0
    assert pot(["report", str(out)]) == 0
    assert len(list((out / "samples").iterdir())) == len(IDS)


@pytest.mark.parametrize("name", ["docker", "bubblewrap"])
def test_r05_r06_any_id_gets_a_box(name: str, run: RunDir, request: pytest.FixtureRequest) -> None:
    wall: Wall = request.getfixturevalue(f"{name}_wall")
    config = RunConfig("cwi", model="org/name:tag", dialect="fenced", workers=3)
    made = Plan(
        config,
        with_ids(LEAST),
        Answering(lambda _: RIGHT),
        dialects.get("fenced"),
        opener(config, wall, "r05"),
    )
    finished = go(made, run)
    assert finished.summary["correct"] == len(LEAST)
    ran = [r.trajectory and r.trajectory.turns[0].executions[0].text for r in run.results()]
    assert ran == ["1"] * len(LEAST)


# --- R08: a full disk


@pytest.mark.parametrize("left", [0, 8_000, 40_000, 90_000, 200_000])
def test_r08_a_disk_that_is_full_from_the_start_or_soon(
    left: int, built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whichever write is the first that fails: one line, a code, nothing half done, a way on."""
    with (
        small_disk(tmp_path / "small", "8m") as disk,
        endpoint("--data", str(built), "--model", "gold") as url,
    ):
        out, ballast = disk / "run", disk / "ballast"
        fill_but(ballast, left)
        command = looking(built, url, out, "--repeats", "8", "--workers", "2")
        code = pot(command)
        line = one_line(capfd.readouterr().err)
        assert f"no space left under {disk}" in line
        assert code in (1, 3)
        ballast.unlink()
        if out.exists():
            records = list((out / "samples").glob("*.json"))
            assert all(json.loads(path.read_text()) for path in records)
            assert f"--resume {out}" in line
            again = ["run", "--resume", str(out), "--json"]
        else:
            assert "--resume" not in line, "there is nothing to go on with"
            again = [*command, "--json"]
        capfd.readouterr()
        assert pot(again) == 0
        assert json.loads(capfd.readouterr().out)["correct"] == 24
        assert len(list(RunDir.open(out).results(pictures=True))) == 24


def fill_but(path: Path, left: int) -> None:
    """Fills the disk and gives `left` bytes back."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            file.truncate(max(0, file.tell() - left))


def test_r08_a_disk_that_is_full_when_the_summary_is_due(tmp_path: Path) -> None:
    class Filling(Log):
        def done(self, row: Row) -> None:
            super().done(row)
            if len(self.rows) == 6:
                fill_but(disk / "ballast", 0)

    with small_disk(tmp_path / "small", "1m") as disk:
        run = RunDir.create(disk / "run")
        run.write_json("config.json", {})
        finished = go(plan(Answering(lambda _: RIGHT)), run, log=Filling())
        assert finished.exit_code == 1
        assert finished.stopped == f"no space left under {run.path}: free some"
        assert finished.summary["correct"] == 6
        assert on_disk(run) == finished.rows
        assert not (run.path / "summary.json").exists()
        (disk / "ballast").unlink()
        model = Answering(lambda _: RIGHT)
        again = go(plan(model), run, on_disk(run))
        assert (again.exit_code, model.requests) == (0, [])
        assert run.read_json("summary.json") == finished.summary


def test_r08_a_run_directory_that_goes_away_or_becomes_read_only(tmp_path: Path) -> None:
    """The kind beside a full disk: whatever stops records from being written stops the run."""
    with small_disk(tmp_path / "small", "1m") as disk:
        run = RunDir.create(disk / "run")
        run.write_json("config.json", {})

        def answer(request: Request) -> str:
            if request.sample_id.endswith("/3"):
                subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            return RIGHT

        finished = go(plan(Answering(answer), count=50, workers=1), run)
        assert finished.exit_code == 1
        assert finished.stopped
        assert "cannot be written (Read-only file system)" in finished.stopped
        assert finished.summary["correct"] == 3
        assert finished.summary["pending"] == 47
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        done = go(plan(Answering(lambda _: RIGHT), count=50), run, on_disk(run))
        assert done.summary["correct"] == 50


# --- R23, R25: pictures


def test_r23_null_pictures_are_neither_sent_nor_mounted(tmp_path: Path, run: RunDir) -> None:
    blue = {"bytes": encoded(colour=9), "path": None}
    rows = [
        data_row(0, image_2=None),
        data_row(1, image_2=blue),
        data_row(2, image=None, image_2=blue),
    ]
    samples = {s.id: s for s in load("cwi", data=folder(tmp_path / "data", rows))}
    mounted: dict[int, list[str]] = {}

    @asynccontextmanager
    async def opened(files: Sequence[InputFile], seed: int) -> AsyncGenerator[EchoBox]:
        mounted[seed] = [file.name for file in files]
        async with echo_box(files, seed) as box:
            yield box

    model = Answering(lambda _: "<answer>-37,112</answer>")
    config = RunConfig("cwi", dialect="fenced")
    made = Plan(config, samples, model, dialects.get("fenced"), opened)
    assert go(made, run).summary["correct"] == 3
    asked = {request.sample_id: request for request in model.requests if request.turn == 1}
    names = [["image_1.png"], ["image_1.png", "image_2.png"], ["image_2.png"]]
    for sample_id, expected in zip(samples, names, strict=True):
        question = asked[sample_id].messages[-1]
        assert mounted[config.sample_seed(sample_id, 0)] == expected
        assert [p.name for p in question.parts if isinstance(p, Image)] == expected
        told = [line.split(":")[0] for line in question.text.split("\n") if "/mnt/data/" in line]
        assert told == expected
        assert "None" not in question.text


def truncated() -> bytes:
    buffer = io.BytesIO()
    noise = Pillow.effect_noise((64, 64), 90).convert("RGB")
    noise.save(buffer, "JPEG")
    return buffer.getvalue()[:900]


def test_r25_one_bad_picture_costs_its_own_sample_only(tmp_path: Path, run: RunDir) -> None:
    broken_exif = b"Exif\0\0II*\0\xff\xff\xff\xff" + b"\xa8" * 40
    bad = {
        7: truncated(),
        9: b"\x89PNG\r\n\x1a\n" + b"\0" * 50,
        11: b"",
        12: b"not a picture",
        13: encoded()[:-20],
    }
    odd = {
        8: with_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<x:xmpmeta \xa8\xff>"),
        10: encoded("JPEG", exif=broken_exif),
        14: encoded("JPEG", comment=b"\xff\xfe\xa8"),
        15: with_chunk(b"eXIf", b"II*\0\xff\xff\xff\xff"),
    }
    rows = [
        data_row(
            n,
            **(
                {"image": {"bytes": d, "path": None}}
                if (d := {**bad, **odd}.get(n)) is not None
                else {}
            ),
        )
        for n in range(40)
    ]
    samples = {s.id: s for s in load("cwi", data=folder(tmp_path / "data", rows))}
    config = RunConfig("cwi", dialect="fenced", workers=4)
    model = Answering(lambda _: "<answer>-37,112</answer>")
    made = Plan(config, samples, model, dialects.get("fenced"), echo_box)
    finished = go(made, run)
    failed = {key[0]: r for key, r in finished.rows.items() if r.failure}
    assert {int(each.rpartition("/")[2]) for each in failed} == set(bad)
    assert {r.failure for r in failed.values()} == {"input"}
    assert all("image_1" in r.why and "\n" not in r.why for r in failed.values())
    assert finished.summary["correct"] == 40 - len(bad)
    assert finished.stopped is None
    assert finished.exit_code == 1


# --- R26, R27: what is an error and what is a wrong answer; what is run again


def scenario(path: Path, *steps: dict[str, Any]) -> str:
    path.write_text(json.dumps(list(steps)))
    return str(path)


def test_r26_an_unknown_model_name_is_no_wrong_answer(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}
    steps = scenario(tmp_path / "s.json", {"body": body, "status": 404, "times": 50})
    with endpoint("--scenario", steps) as url:
        assert pot(looking(built, url, tmp_path / "run")) == 3
    found = capfd.readouterr()
    assert "check --model and --base-url" in one_line(found.err)
    assert "%" not in found.out, "no score of anything"
    assert not (tmp_path / "run").exists()


def test_r26_errors_stand_beside_the_score_and_in_the_code(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    bad = {"body": {"error": {"message": "bad picture"}}, "status": 400}
    steps = scenario(tmp_path / "s.json", {"answer": "1,2,3"}, bad, {"text": "I cannot tell."})
    with endpoint("--scenario", steps) as url:
        assert pot(looking(built, url, out, "--workers", "1", "--max-turns", "1")) == 1
        found = capfd.readouterr()
        assert "1 of 3 owed samples have no score (1 model_api)" in one_line(found.err)
        summary = json.loads((out / "summary.json").read_text())
        assert (summary["scored"], summary["unanswered"]) == (2, 1)
        assert summary["failed"] == {"model_api": 1}
        assert summary["outcomes"] == {"failed": 1, "no_span": 1, "wrong": 1}
        assert summary["bounds"] == [0.0, pytest.approx(1 / 3)]
    # R27: on resume the failed one alone is run again, and its old attempt stays in the log.
    again = scenario(tmp_path / "s2.json", {"answer": "4,5,6"})
    with endpoint("--scenario", again) as url:
        assert pot(["run", "--resume", str(out), "--base-url", url, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["outcomes"] == {"no_span": 1, "wrong": 2}
    assert len(list((out / "attempts").iterdir())) == 1


def test_r27_what_is_run_again_can_be_chosen(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    bad = {"body": {"error": {"message": "bad picture"}}, "status": 400}
    first = scenario(tmp_path / "1.json", {"answer": "1,2,3"}, bad, {"text": "No idea."})
    with endpoint("--scenario", first) as url:
        assert pot(looking(built, url, out, "--workers", "1", "--max-turns", "1")) == 1
    capfd.readouterr()
    resume = ["run", "--resume", str(out)]
    assert pot([*resume, "--retry", "no_span", "--dry-run"]) == 0
    assert json.loads(capfd.readouterr().out)["to_run"] == 2
    assert pot([*resume, "--retry", "blank"]) == 2
    assert "--retry blank: expected some of correct, wrong, no_span" in capfd.readouterr().err
    assert pot(["run", "cwi", "--retry", "no_span"]) == 2
    assert "--retry: expected with --resume RUN" in capfd.readouterr().err
    second = scenario(tmp_path / "2.json", {"answer": "4,5,6", "times": 2})
    with endpoint("--scenario", second) as url:
        assert pot([*resume, "--base-url", url, "--retry", "no_span", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["outcomes"] == {"wrong": 3}
    assert len(list((out / "attempts").iterdir())) == 2, "the old attempts stay"
    assert json.loads((out / "config.json").read_text())["resumed"][-1]["retry"] == ["no_span"]


def test_r27_a_reply_that_was_kept_is_asked_for_anew(run: RunDir) -> None:
    said = ["no idea"]
    model = Answering(lambda _: said[-1])
    made = plan(model, count=1)
    made = replace(made, config=replace(made.config, max_turns=2))
    first = go(replace(made, model=Cached(model, run.replies)), run)
    assert first.summary["outcomes"] == {"no_span": 1}
    said.append(RIGHT)
    anew = frozenset(first.rows)
    kept = replace(made, model=Cached(model, run.replies, anew))
    second = go(kept, run, dict(first.rows), anew=anew)
    assert second.summary["outcomes"] == {"correct": 1}
    assert len(model.requests) == 4
    assert go(kept, run, {}).summary["outcomes"] == {"correct": 1}
    assert len(model.requests) == 4, "and is kept again"


# --- R28: a resumed run is an uninterrupted one


class Mixed(Answering):
    """Ten samples, of which three are cut off by the token limit and one refuses."""

    async def reply(self, request: Request) -> Reply:
        found = await super().reply(request)
        number = int(request.sample_id.rpartition("/")[2])
        used = Usage(100 + number, 10 * number, estimated=number == 4)
        if number in (1, 4, 8):
            return replace(found, text="I will", finish_reason="length", usage=used)
        return replace(found, usage=used, seconds=0.25 * number)


@pytest.mark.parametrize("after", [0, 1, 6, 9])
def test_r28_a_run_that_was_stopped_and_resumed_has_the_summary_of_one_that_was_not(
    after: int, run: RunDir, tmp_path: Path
) -> None:
    def answers(request: Request) -> str:
        return RIGHT if int(request.sample_id[-1]) % 2 else "<answer>1,2</answer>"

    other = RunDir.create(tmp_path / "other")
    whole = go(plan(Mixed(answers), count=10), other)
    assert whole.summary["stops"].keys() > {"answered"}

    def refusing(request: Request) -> str | Exception:
        late = int(request.sample_id[-1]) >= after
        return AccessRefused("401") if late else answers(request)

    class Stopping(Mixed):
        async def reply(self, request: Request) -> Reply:
            if int(request.sample_id[-1]) >= after:
                raise AccessRefused("401")
            return await super().reply(request)

    first = go(plan(Stopping(refusing), count=10, workers=1), run)
    assert first.stopped
    assert first.summary["pending"] == 10 - after
    again = go(plan(Mixed(answers), count=10), run, on_disk(run))
    assert again.summary == whole.summary
    assert run.read_json("summary.json") == whole.summary


def test_r28_killed_without_warning_and_resumed(built: Path, tmp_path: Path) -> None:
    """The same with a real process and SIGKILL; only the seconds that replies took may differ."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with endpoint("--data", str(built), "--model", "gold", "--delay", "0.1") as url:
        command = looking(built, url, killed, "--repeats", "10", "--workers", "2")
        process = subprocess.Popen([*POT, *command], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while len(list(killed.glob("samples/*.json"))) < 6 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        assert 6 <= len(list(killed.glob("samples/*.json"))) < 30
        assert not (killed / "summary.json").exists()
        assert pot(["run", "--resume", str(killed)]) == 0
        assert pot(looking(built, url, whole, "--repeats", "10", "--workers", "8")) == 0
    summaries = [json.loads((each / "summary.json").read_text()) for each in (killed, whole)]
    for summary in summaries:
        assert summary.pop("seconds") > 0
    assert summaries[0] == summaries[1]


def test_two_runs_of_one_directory_exclude_each_other(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    with endpoint("--data", str(built), "--model", "gold", "--delay", "2") as url:
        command = looking(built, url, out, "--repeats", "9", "--workers", "2")
        process = subprocess.Popen([*POT, *command], stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while not (out / "owed.json").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            for second in (
                ["run", "--resume", str(out)],
                ["score", str(out)],
                [*command, "--force"],
            ):
                assert pot(second) == 2
                line = one_line(capfd.readouterr().err)
                assert f"{out}: in use by process {process.pid} on " in line
                assert "since 20" in line
        finally:
            process.kill()
            process.wait(60)
    assert (out / "owed.json").exists()


# --- R29, R31: whose fault a lost box is


def test_r29_a_box_that_fails_is_never_told_as_the_models_fault(run: RunDir) -> None:
    """R29: as infrastructure it is tried again in a new box, with the same reply."""
    fates: list[Exception | None] = [
        BoxLost("exception on running command: handler is closed"),
        BoxLost("no answer within 10 s"),
        None,
    ]

    class Failing(EchoBox):
        async def run(self, code: str, seconds: float | None = None) -> Execution:
            fate = fates.pop(0) if fates else None
            if fate:
                raise fate
            return await super().run(code, seconds)

    @asynccontextmanager
    async def failing(files: Sequence[InputFile], seed: int) -> AsyncGenerator[EchoBox]:
        del files, seed
        yield Failing()

    model, log = Answering(lambda _: RIGHT), Log()
    made = plan(model, count=1, workers=1, opened=failing)
    finished = go(replace(made, model=Cached(model, run.replies)), run, log=log)
    assert finished.summary["correct"] == 1
    assert len(model.requests) == 2, "the reply that was there is not paid for again"
    told = json.dumps([[m.text for m in r.messages] for r in model.requests])
    assert "handler is closed" not in told
    assert "no answer within" not in told
    assert "Output:\\nran print(1)" in told
    assert sum("trying again in a new box" in note for note in log.notes) == 2
    assert next(run.results()).seconds < 2, "lost boxes and waits are not the model's time"


def test_r29_a_box_that_never_works_is_infrastructure(run: RunDir) -> None:
    class Dead(EchoBox):
        async def run(self, code: str, seconds: float | None = None) -> Execution:
            raise BoxLost("handler is closed")

    @asynccontextmanager
    async def dead(files: Sequence[InputFile], seed: int) -> AsyncGenerator[EchoBox]:
        del files, seed
        yield Dead()

    finished = go(plan(Answering(lambda _: RIGHT), count=2, opened=dead), run)
    assert finished.summary["failed"] == {"sandbox_host": 2}
    assert finished.summary["scored"] == 0
    assert finished.exit_code == 3


def with_replies(model: Listed, wall: Wall, memory_mb: int) -> Plan:
    config = RunConfig("cwi", dialect="fenced", workers=1, memory_mb=memory_mb, max_turns=8)
    opened: OpenSeeded = opener(config, wall, "cases")
    return Plan(config, with_ids(["s/0"]), model, dialects.get("fenced"), opened)


@pytest.mark.parametrize("name", ["docker", "bubblewrap"])
def test_r31_out_of_memory_again_and_again_is_the_models_doing(
    name: str, run: RunDir, request: pytest.FixtureRequest
) -> None:
    wall: Wall = request.getfixturevalue(f"{name}_wall")
    greedy = "```python\nx = bytearray(2 * 2**30)\nfor i in range(0, len(x), 4096): x[i] = 1\n```"
    model = Listed([greedy] * 3)
    finished = go(with_replies(model, wall, memory_mb=512), run)
    found = next(run.results())
    assert found.trajectory
    assert found.failure is None
    assert found.trajectory.stop == "box_exhausted"
    causes = [e.cause for turn in found.trajectory.turns for e in turn.executions]
    assert causes == ["out_of_memory"] * 3
    assert found.score
    assert (found.score.value, found.score.outcome) == (0, "no_span")
    assert finished.summary["scored"] == finished.summary["unanswered"] == 1
    assert finished.exit_code == 0
    assert len(model.requests) == 3, "a limited number of restarts, not one more"
    told = model.requests[-1].messages[-1].text
    assert "memory" in told.lower()


@pytest.mark.parametrize("name", ["docker", "bubblewrap"])
def test_r31_after_one_death_the_sample_goes_on(
    name: str, run: RunDir, request: pytest.FixtureRequest
) -> None:
    """Exit code 137 by the model's own kill is neither memory nor the host; files can be written
    after it."""
    wall: Wall = request.getfixturevalue(f"{name}_wall")
    kill = "```python\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n```"
    write = "```python\nopen('a.txt', 'w').write('x')\nprint(open('a.txt').read() * 3)\n```"
    finished = go(with_replies(Listed([kill, write, RIGHT]), wall, memory_mb=512), run)
    found = next(run.results())
    assert found.trajectory
    first, second = (turn.executions[0] for turn in found.trajectory.turns[:2])
    assert (first.status, first.cause, first.kernel) == ("died", "signal:9", "restarted")
    assert (second.status, second.text) == ("ok", "xxx")
    assert finished.summary["correct"] == 1


# --- R30: strange answers


STRANGE: list[tuple[str, Callable[[int], str]]] = [
    ("powers", lambda n: "9" + "**9" * n),
    ("brackets", lambda n: "\\boxed{" + "(" * n),
    ("braces", lambda n: "\\boxed{" * n),
    ("digits", lambda n: "9" * n),
    ("points", lambda n: "1." * n),
    ("exponents", lambda n: "1e" + "9" * n),
    ("signs", lambda n: "+-" * n),
    ("commas", lambda n: "1," * n),
    ("blanks", lambda n: "1" + " " * n + "2"),
    ("tags", lambda n: "<answer>" * n),
    ("ends", lambda n: "</answer>" * n),
    ("fences", lambda n: "```\n" * n),
    ("thoughts", lambda n: "<think>" * n),
    ("letters", lambda n: "a" * n + "!"),
    ("code", lambda n: "__import__('os').system('touch /tmp/owned')" + "#" * n),
]


@pytest.mark.parametrize(("name", "make"), STRANGE, ids=[name for name, _ in STRANGE])
def test_r30_no_answer_holds_a_run_up(
    name: str, make: Callable[[int], str], tmp_path: Path
) -> None:
    """In a process of its own, with a hard limit: an asyncio timeout could not stop it."""
    del name
    lines: list[str] = []
    for task in ("swatch_rgb", "circular_shift", "peak_count"):
        for text in (make(100_000), f"<answer>{make(100_000)}</answer>"):
            gold = {"swatch_rgb": "7,8,9", "circular_shift": "7,8", "peak_count": "77"}.get(task)
            if gold:
                lines.append(json.dumps({"task": task, "answer": gold, "response": text}))
    (tmp_path / "responses").write_text("\n".join(lines) + "\n")
    score = ["score", "--benchmark", "cwi", "--responses", str(tmp_path / "responses")]
    done = subprocess.run([*POT, *score], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    assert {each["score"] for each in found} == {0}


def test_r30_a_run_with_strange_answers_ends(run: RunDir) -> None:
    answers = [make(20_000) for _, make in STRANGE]

    def answer(request: Request) -> str:
        return f"<answer>{answers[int(request.sample_id.rpartition('/')[2])]}</answer>"

    finished = go(plan(Answering(answer), count=len(answers), workers=4), run)
    assert finished.summary["scored"] == len(answers)
    assert finished.summary["correct"] == 0
    assert finished.exit_code == 0
