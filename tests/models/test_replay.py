"""`replay:RUN`: the same replies, answers and scores again without a server; what it has not is one
line."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli import run as pot
from agent.messages import Message, Reply, Request, Text, Usage
from agent.models.errors import ContextFull, ModelRefused
from agent.models.replay import Replayed
from agent.rundir import RunDir
from agent.trajectory import Result
from sandbox.wall import Wall
from tests.runs.results import failed, result

BUILD = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "2"]


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    assert pot([*BUILD, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def recorded(tmp_path: Path) -> RunDir:
    run = RunDir.create(tmp_path / "recorded")
    run.write_json("config.json", {"config": {"benchmark": "cwi", "dialect": "fenced"}})
    return run


def asked(run: RunDir, sample_id: str = "t/test/0", repeat: int = 0, turn: int = 1) -> Reply:
    message = Message("user", (Text("?"),))
    request = Request((message,), sample_id=sample_id, repeat=repeat, turn=turn)
    return asyncio.run(Replayed(run.path).reply(request))


def said(run: Path) -> dict[tuple[str, int], Result]:
    return {(r.id, r.repeat): r for r in RunDir.open(run).results(pictures=True)}


def replies(found: Result) -> list[Reply]:
    assert found.trajectory
    return [replace(turn.reply, cached=False) for turn in found.trajectory.turns]


def test_a_run_again_on_each_wall_gives_every_answer_and_score_again(
    items: Path, tmp_path: Path, wall: Wall, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    plain = ["run", "cwi", "--data", str(items), "--sandbox", wall.name]
    assert pot([*plain, "--model", "scripted", "--dialect", "fenced", "--out", str(first)]) == 0
    assert pot([*plain, "--model", f"replay:{first}", "--out", str(second)]) == 0
    capfd.readouterr()
    before, again = said(first), said(second)
    assert before.keys() == again.keys()
    assert len(before) == 2
    for key, found in again.items():
        then = before[key]
        assert found.trajectory
        assert then.trajectory
        assert replies(found) == replies(then), "usage, seconds and text are those recorded"
        assert found.trajectory.answer == then.trajectory.answer
        assert found.score == then.score
        assert found.trajectory.stop == then.trajectory.stop
        ran = [[e.text for e in turn.executions] for turn in found.trajectory.turns]
        assert any(text for turn in ran for text in turn), "the code did run again"
        if wall.name != "process":  # its folders have other names each time
            assert ran == [[e.text for e in turn.executions] for turn in then.trajectory.turns]
    about = json.loads((second / "config.json").read_text())
    assert about["config"]["model"] == f"replay:{first}"
    assert about["config"]["dialect"] == "fenced", "as it was recorded"
    assert about["replayed"]["model"] == "scripted"
    assert about["replayed"]["data_sha256"] == about["data_sha256"]


def test_a_part_of_a_run_without_a_sandbox_and_from_another_folder(
    items: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = ["run", "cwi", "--data", str(items), "--sandbox", "process", "--json"]
    assert pot([*plain, "--limit", "1", "--out", "first"]) == 0
    ids = ["--ids", "swatch_rgb/test/0"]
    assert pot([*plain, *ids, "--model", "replay:first", "--out", "second"]) == 0
    third = [*plain, "--model", "replay:first", "--out", "third"]
    capfd.readouterr()
    assert pot(third) == 1, "of two samples one was never recorded"
    found = capfd.readouterr()
    assert json.loads(found.out)["failed"] == {"model_api": 1}
    assert json.loads(found.out)["correct"] == 1
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    # Once the missing one is recorded, the resume finds the run by its full name.
    assert pot(["run", "--resume", "../third", "--json"]) == 1
    assert "replay:" in capfd.readouterr().err


def test_what_was_recorded(recorded: RunDir) -> None:
    recorded.write(result())
    first = asked(recorded)
    assert (first.text, first.seconds, first.reasoning) == ("Let me look.", 1.5, "hm")
    assert asked(recorded, turn=2).usage == Usage(10, 5)
    assert asked(recorded, turn=2).finish_reason == "stop"


@pytest.mark.parametrize(
    ("sample_id", "repeat", "turn", "words"),
    [
        ("t/test/9", 0, 1, "expected a record of 't/test/9', repeat 0, found none among 2; choose"),
        ("t/test/0", 1, 1, "expected a record of 't/test/0', repeat 1, found none among 2"),
        ("../../x", 0, 1, "expected a record of '../../x', repeat 0, found none"),
        ("t/test/0", 0, 3, "a reply for turn 3 of 't/test/0', repeat 0, found 2 and then answered"),
        ("lost", 0, 1, "expected replies to 'lost', repeat 0, found a failure (model_api: 502 Bad"),
        ("torn", 0, 1, "expected a record, cannot be read: not a whole JSON file"),
    ],
)
def test_what_was_not_recorded_is_one_line(
    recorded: RunDir, sample_id: str, repeat: int, turn: int, words: str
) -> None:
    recorded.write(result())
    recorded.write(failed("lost"))
    if sample_id == "torn":
        recorded.record_path(("torn", 0)).write_text('{"id": "torn", ')
    with pytest.raises(ModelRefused) as raised:
        asked(recorded, sample_id, repeat, turn)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_context_that_was_full_is_full_again(recorded: RunDir) -> None:
    found = result()
    assert found.trajectory
    recorded.write(replace(found, trajectory=replace(found.trajectory, stop="context_full")))
    assert asked(recorded, turn=2).usage == Usage(10, 5)
    with pytest.raises(ContextFull):
        asked(recorded, turn=3)
    with pytest.raises(ModelRefused):
        asked(recorded, turn=4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "replay:gone"], "--model replay:gone: expected a run directory (with config"),
        (["--model", "replay:"], "expected a run directory"),
        (["--model", "replay:plain"], "found a folder without one"),
        (["--model", "replay:torn"], "torn/config.json: cannot be read"),
        (["--model", "replay:good", "--base-url", "http://127.0.0.1:1/v1"], "asks no server"),
        (["--model", "replay:good", "--out", "good", "--force"], "it is the run that is replayed"),
    ],
)
def test_what_is_no_run_is_one_line_and_leaves_nothing(
    arguments: list[str],
    words: str,
    items: Path,
    recorded: RunDir,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded.path.rename("good")
    for name, text in (("plain", None), ("torn", "{")):
        (tmp_path / name).mkdir()
        if text:
            (tmp_path / name / "config.json").write_text(text)
    there = {path.name for path in tmp_path.iterdir()}
    plain = ["run", "cwi", "--data", str(items), "--sandbox", "process"]
    assert pot([*plain, *arguments]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert words in error
    assert {path.name for path in tmp_path.iterdir()} == there
    assert (tmp_path / "good" / "config.json").exists()


def test_ask_has_no_samples_to_replay(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], recorded: RunDir
) -> None:
    assert pot(["ask", "What is it?", "--model", f"replay:{recorded.path}"]) == 2
    assert "it answers the samples of `pot run` only" in capfd.readouterr().err
