# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
"""`pot build`, `pot score` and `pot list` as a user runs them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import datasets
import pytest

from agent.cli import run
from benchmarks import load
from benchmarks.cwi.build import build
from benchmarks.cwi.photos import Split
from benchmarks.cwi.tasks import TASKS
from tests.runs.test_rundir import small_disk


def digests(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("data")
    assert run(["build", "cwi", "--out", str(out), "--count", "2", "--split", "test,train"]) == 0
    return out


def test_build_gives_a_data_folder(built: Path) -> None:
    samples = load("cwi", data=built, split="test")
    assert Counter(sample.task for sample in samples) == dict.fromkeys(TASKS, 2)
    assert [s.id for s in samples[:2]] == ["circular_shift/test/0", "circular_shift/test/1"]
    assert [s.difficulty for s in samples[:2]] == ["easy", "medium"]
    train = load("cwi", data=built, split="train")
    used = [{s.meta["photos"][0] for s in split} for split in (samples, train)]
    assert not used[0] & used[1]


def test_same_seed_same_bytes_whatever_the_processes(built: Path, tmp_path: Path) -> None:
    # The folder of the fixture was made by a pool where the machine has more than one core.
    out = tmp_path / "alone"
    splits: list[Split] = ["train", "test"]
    files = list(build(out, tasks=list(TASKS), splits=splits, count=2, processes=1))
    assert [file.items for file in files] == [2] * 6
    assert digests(out) == digests(built)
    again = tmp_path / "seed"
    list(build(again, tasks=["swatch_rgb"], splits=["test"], count=2, seed=1, processes=1))
    name = "swatch_rgb/test-00000-of-00001.parquet"
    assert digests(again)[name] != digests(built)[name]


def test_data_sets_library_reads_it(built: Path, tmp_path: Path) -> None:
    loaded: Any = datasets.load_dataset(str(built), "circular_shift", cache_dir=str(tmp_path))
    assert set(loaded) == {"train", "test"}
    row = loaded["test"][0]
    assert list(row) == ["id", "image", "image_2", "prompt", "answer", "difficulty", "meta"]
    assert row["image"].size == (480, 480)
    assert row["image_2"] is None


def test_a_failed_build_leaves_nothing_half_written(tmp_path: Path) -> None:
    photos, out = tmp_path / "photos", tmp_path / "out"
    (photos / "val2017").mkdir(parents=True)
    (photos / "val2017/broken.jpg").write_bytes(b"\xff\xd8\xff")
    line = ["build", "cwi", "--photos", str(photos), "--out", str(out), "--count", "1"]
    assert run(line) == 2
    assert not [path for path in out.rglob("*") if path.is_file()]


SWATCH = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "1", "--out"]


def test_a_folder_that_holds_something_is_left_alone_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, note = tmp_path / "out", tmp_path / "out/swatch_rgb/note.txt"
    out.mkdir()  # an empty one is as good as none
    assert run([*SWATCH, str(out)]) == 0
    note.write_text("mine")
    before = digests(out)
    capsys.readouterr()
    assert run([*SWATCH, str(out), "--seed", "1"]) == 2
    assert capsys.readouterr().err == (
        f"pot: --out {out}: expected a new or empty folder; --force replaces there what this "
        "build makes and leaves the rest\n"
    )
    assert digests(out) == before
    assert run([*SWATCH, str(out), "--seed", "1", "--split", "test,train", "--force"]) == 0
    after = digests(out)
    assert after.keys() - before.keys() == {"swatch_rgb/train-00000-of-00001.parquet"}
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"swatch_rgb/test-00000-of-00001.parquet", "README.md"}


def test_ctrl_c_in_a_later_task_changes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run([*SWATCH, str(out)]) == 0
    before = digests(out)
    line = [sys.executable, "-m", "agent", "build", "cwi", "--tasks", "swatch_rgb,crop_provenance"]
    with subprocess.Popen(
        [*line, "--count", "100", "--seed", "3", "--out", str(out), "--force"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert "100 items" in process.stdout.readline()
        assert digests(out).items() >= before.items(), "the first file is made, not yet in place"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == f"pot: interrupted; nothing in {out} was changed\n"
    assert digests(out) == before
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "swatch_rgb"]


def test_a_full_disk_in_a_later_task_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_disk(tmp_path / "small", "2m") as disk:
        line = ["build", "cwi", "--tasks", "swatch_rgb,circular_shift", "--count", "6"]
        assert run([*line, "--out", str(disk / "out")]) == 2
        printed = capsys.readouterr()
        assert "No space left" in printed.err
        assert printed.err.count("\n") == 1
        assert list(disk.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: a build starts no processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_build_leaves_no_process(how: signal.Signals, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "agent", "build", "cwi", "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        line,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # What a shell does for a foreground job: a suite run in the background ignores SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as build_process:
        group = build_process.pid
        deadline = time.monotonic() + 60
        # Two workers, or one and the resource tracker: then it is at work.
        while len(members(group)) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(members(group)) >= 3
        os.killpg(group, how) if how == signal.SIGINT else os.kill(group, how)
        while members(group) - {group} and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not members(group) - {group}
        said = build_process.communicate(timeout=60)[1].decode()
    if how == signal.SIGINT:
        assert build_process.returncode == 130
        assert said.count("\n") == 1
        assert "interrupted" in said
    assert not list(tmp_path.rglob("*.parquet"))


def members(group: int) -> set[int]:
    """The living processes of a process group."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
            if int(pgrp) == group and state != "Z":
                found.add(int(path.parent.name))
    return found


WRONG = {
    "benchmark": (["build", "nmrr", "--out", "{out}"], "cwi"),
    "task": (["build", "cwi", "--out", "{out}", "--tasks", "swatch"], "did you mean swatch_rgb"),
    "split": (["build", "cwi", "--out", "{out}", "--split", "tests"], "did you mean test"),
    "photos": (["build", "cwi", "--out", "{out}", "--photos", "{out}/no"], "folder of photographs"),
    "count": (["build", "cwi", "--out", "{out}", "--count", "0"], "--count"),
    "flag": (["build", "cwi", "--out", "{out}", "--phots", "x"], "--phots"),
    "no out": (["build", "cwi"], "--out"),
    "no task": (["build", "cwi", "--out", "{out}", "--tasks", " , "], "--tasks: expected names"),
    "no split": (["build", "cwi", "--out", "{out}", "--split", ""], "--split: expected names"),
    "seed": (["build", "cwi", "--out", "{out}", "--seed", "-1"], "--seed"),
    "huge count": (["build", "cwi", "--out", "{out}", "--count", "1" * 30], "--count"),
    "count is nan": (["build", "cwi", "--out", "{out}", "--count", "nan"], "--count"),
    "photos are a file": (["build", "cwi", "--out", "{out}", "--photos", "{file}"], "{file}"),
    "no photos": (["build", "cwi", "--out", "{out}", "--photos", "{empty}"], "found none"),
    "NUL": (["build", "cwi", "--out", "a\0b"], "NUL"),
    "out is a file": (["build", "cwi", "--out", "{file}/x", "--count", "1"], "cannot be written"),
    "score nothing": (["score"], "--responses"),
    "score benchmark": (["score", "--responses", "{file}"], "--benchmark"),
    "score file": (["score", "--benchmark", "cwi", "--responses", "{out}/no"], "No such file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, empty, out = tmp_path / "file", tmp_path / "empty", tmp_path / "out"
    file.write_text("x")
    empty.mkdir()
    line, words = WRONG[name]
    code = run([word.format(out=out, file=file, empty=empty) for word in line])
    printed = capsys.readouterr()
    assert code == 2
    assert printed.out == ""
    assert words.format(file=file) in printed.err
    assert printed.err.count("\n") == 1
    assert not out.exists()


# --- pot score

GOOD: list[dict[str, Any]] = [
    {"id": "a", "task": "circular_shift", "answer": "1,2", "response": "<answer>3,4</answer>"},
    {"task": "peak_count", "answer": "7", "response": "seven"},
    {"id": 3, "task": "peak_count", "answer": "7", "response": "<answer>8</answer>"},
    {"task": "peak_count", "answer": "7", "response": "<answer>", "finish_reason": "stop"},
    {"task": "peak_count", "answer": "7", "response": "<answer>7", "finish_reason": "stop"},
    {"task": "peak_count", "answer": "7", "response": "<answer>7", "finish_reason": "length"},
    {"task": "peak_count", "answer": "7", "response": "<answer>7"},
    {"task": "peak_count", "answer": "7", "response": None, "reasoning": "<answer>7</answer>"},
    {"task": "peak_count", "answer": "7", "response": "<answer>7\u2028</answer>", "meta": "{}"},
]
OUTCOMES = [
    *("correct", "no_span", "wrong", "unparsed", "correct", "no_span", "no_span", "no_span"),
    "correct",
]


def write_lines(path: Path, lines: list[Any]) -> Path:
    texts = [
        json.dumps(each, ensure_ascii=False) if isinstance(each, dict) else each for each in lines
    ]
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def test_score_responses(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = write_lines(tmp_path / "r.jsonl", [*GOOD, ""])
    assert run(["score", "--benchmark", "cwi", "--responses", str(file)]) == 0
    out = capfdbinary.readouterr().out
    results = [json.loads(line) for line in out.decode().split("\n") if line]
    assert [result["outcome"] for result in results] == OUTCOMES
    assert [result["score"] for result in results] == [int(o == "correct") for o in OUTCOMES]
    assert [result["id"] for result in results] == ["a", None, 3] + [None] * 6
    assert list(results[0]) == ["id", "score", "outcome", "parsed", "reason"]
    assert results[0]["parsed"] == "3,4"
    written = tmp_path / "out.jsonl"
    assert (
        run(["score", "--benchmark", "cwi", "--responses", str(file), "--out", str(written)]) == 0
    )
    assert written.read_bytes() == out
    assert capfdbinary.readouterr().out == b""


BAD: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "no JSON"),
    "deep": ("[" * 100_000, "too deep"),
    "a list": ("[1]", "JSON object"),
    "no task": ({"answer": "1", "response": ""}, '"task"'),
    "no answer": ({"task": "peak_count", "response": ""}, '"answer"'),
    "no response": ({"task": "peak_count", "answer": "1"}, '"response"'),
    "number as answer": ({"task": "peak_count", "answer": 1, "response": ""}, "found 1"),
    "unknown task": ({"task": "peaks", "answer": "1", "response": ""}, "'peaks'"),
    "bad gold": ({"task": "peak_count", "answer": "one", "response": ""}, "'one'"),
    "bad id": ({"id": [1], "task": "peak_count", "answer": "1", "response": ""}, '"id"'),
    "bad meta": ({"task": "peak_count", "answer": "1", "response": "", "meta": "{"}, '"meta"'),
    "odd meta": ({"task": "peak_count", "answer": "1", "response": "", "meta": [1]}, '"meta"'),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_stops_before_any_output(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line, words = BAD[name]
    file = write_lines(tmp_path / "r.jsonl", [GOOD[0], line, GOOD[1]])
    out = tmp_path / "out.jsonl"
    for more in ([], ["--out", str(out)]):
        assert run(["score", "--benchmark", "cwi", "--responses", str(file), *more]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "line 2" in printed.err
        assert words in printed.err
    assert not out.exists()


# --- pot list


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list"]) == 0
    text = capsys.readouterr().out
    assert "swatch_rgb            generator, reference" in text
    assert run(["list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["cwi"]
    assert len(rows) == 30
    assert {row["task"] for row in rows if row["generator"]} == set(TASKS)
    assert all(row["rule"] and row["group"] for row in rows)
