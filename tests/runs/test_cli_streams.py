"""Standard streams of every kind: another encoding, closed, full, a reader that went away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.results import png, result
from tests.runs.test_cli_run import endpoint, looking
from tests.runs.test_report import made

POT = [sys.executable, "-m", "agent"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Items, a run whose record holds what no old code page has, a reply, cells."""
    folder = tmp_path_factory.mktemp("place")
    items = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "1", "--out", "items"]
    subprocess.run([*POT, *items], cwd=folder, check=True, capture_output=True)
    made(folder / "run", [result("größe/图/0", task="größe_图")])
    (folder / "reply.txt").write_text("größe <answer>图</answer>", "utf-8")
    (folder / "cells.py").write_text("print('größe 图')\n", "utf-8")
    (folder / "photo.png").write_bytes(png())
    return folder


COMMANDS: dict[str, list[str]] = {
    "help": ["--help"],
    "help of run": ["run", "--help"],
    "list": ["list"],
    "list json": ["list", "--json"],
    "version": ["version"],
    "parse": ["parse", "reply.txt"],
    "exec": ["exec", "cells.py", "--sandbox", "process"],
    "score": ["score", "run"],
    "report": ["report", "run"],
    "dry run": ["run", "cwi", "--data", "items", "--sandbox", "process", "--dry-run"],
    "build": ["build", "cwi", "--tasks", "swatch_rgb", "--count", "1", "--out", "x", "--force"],
}


CODES = {"score": 1}
"""The record's task is none of the benchmark's, so it has no score."""


def start(
    command: list[str], place: Path, stdout: int | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*POT, *command],
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "encoding"), [*((name, "ascii") for name in COMMANDS), ("list", "cp437")]
)
def test_an_encoding_that_lacks_characters(name: str, encoding: str, place: Path) -> None:
    done = start(COMMANDS[name], place, LC_ALL="C", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert done.returncode == CODES.get(name, 0), done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout
    if name in ("list json", "parse", "exec", "dry run"):
        json.loads(done.stdout)


def test_a_terminal_command_in_ascii(place: Path, tmp_path: Path) -> None:
    """The table, the progress, the answer and the errors: `pot run` and `pot ask`."""
    scenario = tmp_path / "s.json"
    scenario.write_text('[{"turn": 1, "text": "größe 图", "answer": "1,2,3 – 图"}]', "utf-8")
    with endpoint("--scenario", str(scenario)) as url:
        for command in (
            ["ask", "photo.png", "Which?", "--model", "m", "--base-url", url, "--arm", "look"],
            looking(place / "items", url, tmp_path / "run"),
        ):
            done = start(command, place, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
            assert done.returncode == 0, done.stderr
            assert b"Traceback" not in done.stderr
            assert done.stdout.isascii()
    done = start(["run", "größe"], place, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["help", "list json", "exec", "score", "report", "build"])
def test_a_full_device_is_one_line(name: str, place: Path) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = start(COMMANDS[name], place, full.fileno())
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"No space left" in done.stderr
    assert b"cannot write the output" in done.stderr


@pytest.mark.parametrize("name", ["help", "list", "exec", "score", "report", "build"])
def test_a_reader_that_went_away(name: str, place: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = start(COMMANDS[name], place, writer)
    finally:
        os.close(writer)
    assert done.returncode == 141, done.stderr
    assert done.stderr == b""


@pytest.mark.parametrize("name", ["list", "exec", "score", "build"])
def test_closed_streams(name: str, place: Path) -> None:
    """A file that is opened later must not become standard output."""
    line = " ".join([*(f"'{word}'" for word in [*POT, *COMMANDS[name]]), "<&- >&- 2>&-"])
    done = subprocess.run(["/bin/sh", "-c", line], cwd=place, timeout=100, check=False)
    assert done.returncode == CODES.get(name, 0)
    about = json.loads((place / "run/config.json").read_text())
    assert about["config"]["model"] == "m"


def test_errors_that_nobody_can_read_keep_their_code(place: Path) -> None:
    line = " ".join([*(f"'{word}'" for word in [*POT, "report", "nowhere"]), "2>/dev/full"])
    assert subprocess.run(["/bin/sh", "-c", line], cwd=place, check=False).returncode == 2


def test_a_run_whose_json_nobody_reads_is_whole(place: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "s.json"
    scenario.write_text('[{"turn": 1, "answer": "1,2,3"}]')
    reader, writer = os.pipe()
    os.close(reader)
    with endpoint("--scenario", str(scenario)) as url:
        out = tmp_path / "run"
        done = start(looking(place / "items", url, out, "--json"), place, writer)
    os.close(writer)
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr
    assert json.loads((out / "summary.json").read_text())["scored"] == 1
    assert (out / "report.html").exists()
