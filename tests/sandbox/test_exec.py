"""`pot exec`, black box: one JSON line a cell, nothing else; exit codes; one-line messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agent.cells import split_cells


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", []),
        ("\n  \n", []),
        ("a = 1\n", ["a = 1\n"]),
        ("# %%\na\n#%% title\nb\n", ["a\n", "b\n"]),
        ("first\n# %%\nsecond", ["first\n", "second"]),
        ("# %%\n# %%\n\n# %%", ["", "\n", ""]),
        ("\n# %%\na", ["a"]),
        ("# %%%\r\na\r\n", ["a\n"]),
        ("x = 1 # %%\n  # %%\n#  %%\n", ["x = 1 # %%\n  # %%\n#  %%\n"]),
        ("s = '''\n# %%\n'''", ["s = '''\n", "'''"]),
    ],
)
def test_cells(text: str, cells: list[str]) -> None:
    assert split_cells(text) == cells


def pot_exec(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agent", "exec", *arguments]
    return subprocess.run(command, input=stdin, text=True, capture_output=True, timeout=100)


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_one_line_a_cell(tmp_path: Path) -> None:
    picture = tmp_path / "photo.png"
    Image.new("RGB", (6, 5)).save(picture)
    program = tmp_path / "cells.py"
    program.write_text(
        "from PIL import Image\nimport os\ndata = os.environ.get('DATA', '.')\n"
        "# %% fails\nprint('a'); 1/0\n# %% empty\n# %%\n"
        "Image.new('RGB', (3, 2))\n# %% dies\nos._exit(2)\n# %%\nprint('again')"
    )
    done = pot_exec(str(program), "--image", str(picture), "--sandbox", "process")
    first, failed, empty, shown, died, again = lines(done)
    assert list(first) == [
        "status", "cause", "kernel", "seconds", "cpu_seconds", "peak_mb", "outputs", "files",
        "dropped", "note",
    ]  # fmt: skip
    assert (first["status"], first["outputs"], first["dropped"]) == (
        "ok", [], {"chars": 0, "pictures": 0},
    )  # fmt: skip
    assert failed["outputs"][0] == {"type": "stream", "name": "stdout", "text": "a\n"}
    assert failed["outputs"][1]["name"] == "ZeroDivisionError"
    assert (empty["status"], empty["outputs"]) == ("ok", [])
    output = shown["outputs"][0]
    assert (output["type"], output["mime"]) == ("display", "image/png")
    assert (output["width"], output["height"]) == (3, 2)
    assert (died["status"], died["cause"], died["kernel"]) == ("died", "exit:2", "restarted")
    assert again["outputs"] == [{"type": "stream", "name": "stdout", "text": "again\n"}]


def test_stdin_and_a_deadline() -> None:
    done = pot_exec(
        "--sandbox", "process", "--cell-seconds", "0.5", "-", stdin="import time; time.sleep(30)"
    )
    (line,) = lines(done)
    assert (line["status"], line["cause"]) == ("timeout", "deadline")


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["missing.py"], "missing.py: No such file", 2),
        (["-", "--image", "nowhere.png"], "nowhere.png: No such file", 2),
        (["-", "--cell-seconds", "0"], "--cell-seconds: expected", 2),
        (["-", "--memory-mb", "1"], "--memory-mb", 2),
        (["-", "--sandbox", "jail"], "jail", 2),
        (["-", "--frobnicate"], "--frobnicate", 2),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], words: str, code: int) -> None:
    done = pot_exec(*arguments, stdin="1")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("pot: ")
    assert words in done.stderr


def test_equal_names_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        Image.new("RGB", (2, 2)).save(tmp_path / folder / "same.png")
    images = ["--image", str(tmp_path / "a/same.png"), "--image", str(tmp_path / "b/same.png")]
    done = pot_exec("-", *images, stdin="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'same.png' twice" in done.stderr
