"""`pot ask` and `pot report` from the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run as pot
from benchmarks import load
from tests.runs.results import png, result
from tests.runs.test_cli_run import endpoint
from tests.runs.test_report import made


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    path.write_bytes(png(size=(64, 48)))
    return path


def scenario(folder: Path, steps: Sequence[dict[str, Any]]) -> str:
    path = folder / "scenario.json"
    path.write_text(json.dumps(steps))
    return str(path)


def test_ask_shows_code_outputs_pictures_and_the_answer(
    photo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = (
        "from PIL import Image\n"
        "print('size [bold]8')\n"
        "display(Image.new('RGB', (32, 24), 'red'))\n"
        "1 / 0"
    )
    answer = "<answer>\x1b]0;owned\x07 [red]8[/red]</answer>"
    with endpoint("--scenario", scenario(tmp_path, [{"code": code}, {"text": answer}])) as url:
        arguments = ["ask", str(photo), "How large?", "--model", "m", "--base-url", url]
        assert pot([*arguments, "--sandbox", "process"]) == 0
    shown = capfd.readouterr().out
    for words in ("from PIL import Image", "size [bold]8", "[picture 32×24 px]"):
        assert words in shown
    assert "ZeroDivisionError: division by zero" in shown
    assert "[error, " in shown
    assert "Answer: \\x1b]0;owned\\x07 [red]8[/red]" in shown
    assert "\x1b" not in shown


def test_ask_solves_an_item_by_the_reference_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    build = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "1", "--out", str(tmp_path)]
    assert pot(build) == 0
    sample = load("cwi", data=tmp_path)[0]
    picture = tmp_path / "p.png"
    picture.write_bytes(sample.pictures[0].data)
    capfd.readouterr()
    with endpoint("--model", "scripted") as url:
        arguments = ["ask", str(picture), sample.prompt, "--model", "m", "--base-url", url]
        assert pot([*arguments, "--sandbox", "process", "--dialect", "fenced"]) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.startswith("Answer: ")
    told = [int(word) for word in last.removeprefix("Answer: ").split(",")]
    gold = [int(word) for word in sample.target.split(",")]
    assert all(abs(a - b) <= 10 for a, b in zip(told, gold, strict=True))


def test_ask_tells_the_model_the_users_names(photo: Path, tmp_path: Path) -> None:
    other = tmp_path / "plan \u202eB.png"
    other.write_bytes(png((1, 2, 3)))
    log = tmp_path / "log.jsonl"
    steps = scenario(tmp_path, [{"answer": "both"}])
    with endpoint("--scenario", steps, "--log", str(log), "--log-bodies") as url:
        arguments = ["ask", str(photo), str(other), "Is photo.png larger?", "--model", "m"]
        assert pot([*arguments, "--base-url", url, "--arm", "look"]) == 0
    body = json.loads(log.read_text())["body"]
    told = "\n".join(part.get("text", "") for part in body["messages"][-1]["content"])
    assert "image_1 is photo.png, image_2 is plan \\u202eB.png." in told
    assert str(tmp_path) not in told
    assert "image_2.png: " in told


def test_ask_without_an_answer_is_code_1(
    photo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    steps = [{"text": "I cannot tell.", "times": 9}]
    with endpoint("--scenario", scenario(tmp_path, steps)) as url:
        arguments = ["ask", str(photo), "Why?", "--model", "m", "--base-url", url]
        assert pot([*arguments, "--arm", "look", "--max-turns", "2"]) == 1
    assert "No answer (max_turns)." in capfd.readouterr().out


def test_ask_bad_input_is_one_line(photo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = photo.with_name("broken.png")
    broken.write_bytes(photo.read_bytes()[:60])
    url = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--arm", "look"]
    cases = [
        ([str(photo), "Why?"], "expected --model NAME"),
        (["nowhere.png", "Why?", *url], "expected a picture, found nowhere.png: No such file"),
        ([str(photo), str(photo), *url], "expected a question after the pictures"),
        ([str(photo), " ", *url], "expected a question after the pictures"),
        ([str(broken), "Why?", *url], "broken.png: expected a whole picture"),
        ([str(photo), "Why?", *url, "--benchmark", "x"], "No such option"),
    ]
    for arguments, words in cases:
        assert pot(["ask", *arguments]) == 2
        error = capfd.readouterr().err.splitlines()[-1]
        assert error.startswith("pot: ")
        assert words in error
    assert pot(["ask", str(photo), "Why? " * 200, *url]) == 3
    assert "is the server running?" in capfd.readouterr().err


def test_report_says_where_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path / "run", [result("a")])
    assert pot(["report", str(run.path)]) == 0
    assert capfd.readouterr().out == f"{run.path}/report.html\n"
    out = tmp_path / "other.html"
    assert pot(["report", str(run.path), "--out", str(out)]) == 0
    assert "12, 7" in out.read_text("utf-8")
    capfd.readouterr()
    assert pot(["report", str(tmp_path)]) == 2
    assert "expected a run directory" in capfd.readouterr().err
