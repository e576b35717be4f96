"""`pot score --responses` on answers that other scorers got wrong, and their whole kind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from benchmarks.responses import result
from benchmarks.sample import Score, Stage

ONE = ("peak_count", "42")
"""A task of one number, and its gold."""


def line(response: str | None, task: str = ONE[0], answer: str = ONE[1], **more: Any) -> str:
    return json.dumps({"task": task, "answer": answer, "response": response, **more})


def scored(
    lines: list[str], path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> list[dict[str, Any]]:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run(["score", "--benchmark", "cwi", "--responses", str(path)]) == 0
    captured = capsysbinary.readouterr()
    assert captured.err == b""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return [json.loads(text, parse_constant=refuse) for text in captured.out.splitlines()]


CASES: dict[str, tuple[str, str, str | None]] = {
    # name: (line, outcome, parsed)
    "P11": (
        line("```python\nx()\n```\nOutput:\n```\n1\n```\n<answer>42</answer>"), "correct", "42",
    ),
    "P11-made-up output": (
        line("<code>x()</code><interpreter><answer>42</answer></interpreter>"), "no_span", None,
    ),
    "P14": (line("<think><answer>42</answer></think> so"), "no_span", None),
    "P15": (line("<answer>1</answer></think><answer>42</answer>"), "correct", "42"),
    "P16": (
        line("<think>a <think>b <answer>1</answer></think> <answer>2</answer></think> "
             "<answer>42</answer>"), "correct", "42",
    ),
    "P16-thought": (
        line("<thought><answer>1</answer></thought><answer>42</answer>"), "correct", "42",
    ),
    "P19": (line("as <answer>your answer here</answer>: <answer>42</answer>"), "correct", "42"),
    "P19-after": (line("<answer>42</answer> as <answer>…</answer>"), "correct", "42"),
    "P19-alone": (line("as <answer>your answer here</answer>"), "unparsed", None),
    "P20-empty": (line("<answer></answer>"), "unparsed", None),
    "P20-blank": (line("<answer>\n \n</answer>"), "unparsed", None),
    "P20-none": (line("I cannot tell from the image."), "no_span", None),
    "P20-empty message": (line(""), "no_span", None),
    "P20-null": (line(None), "no_span", None),
    "P20-wrong": (line("<answer>41</answer>"), "wrong", "41"),
    "P21": (line("it is <answer>42", finish_reason="stop"), "correct", "42"),
    "P21-length": (line("it is <answer>42", finish_reason="length"), "no_span", None),
    "P21-missing": (line("it is <answer>42"), "no_span", None),
    "P21-null": (line("it is <answer>42", finish_reason=None), "no_span", None),
    "P22": (line("/think>", finish_reason="stop", reasoning="Let me write "), "no_span", None),
    "P22-in the reasoning": (line("", reasoning="<answer>42</answer>"), "no_span", None),
    "P27": (line("<answer>\\boxed{42}</answer>"), "correct", "42"),
    "P27-with words": (line("<answer>it is $\\boxed{\\text{42}}$</answer>"), "correct", "42"),
    "P29": (line("<answer>\\boxed{42", finish_reason="length"), "no_span", None),
    "P31-minus": (line("<answer>−5.13 %</answer>", "restore_then_measure", "-5.13"),
                  "correct", "-5.13"),
    "P31-comma": (line("<answer>1,57</answer>", "restore_then_measure", "1.57"), "unparsed", None),
    "P31-thin space": (line("<answer>12\u202f000</answer>", *("peak_count", "12000")),
                       "correct", "12000"),
    "P31-blank": (line("<answer>12 000</answer>", *("peak_count", "12000")), "unparsed", None),
    "P31-full width": (line("<answer>１２．５</answer>", "restore_then_measure", "12.5"),
                       "correct", "12.5"),
    "P31-Arabic-Indic": (line("<answer>٤٢</answer>"), "correct", "42"),
    "P31-power": (line("<answer>2.5 × 10⁻³</answer>", "scan_moire", "0.0025"), "unparsed", None),
    "P31-exponent": (line("<answer>2.5e−3</answer>", "scan_moire", "0.0025"), "correct", "0.0025"),
    "P32-!": (line("<answer>42!</answer>"), "correct", "42"),
    "P32-(): ": (line("<answer>(42).</answer>"), "correct", "42"),
    "P32-%": (line("<answer>60%</answer>", "restore_then_measure", "60"), "correct", "60"),
    "P32-about": (line("<answer>~ 42°C</answer>"), "correct", "42"),
    "P32-units": (line("<answer>**42** px</answer>"), "correct", "42"),
    "P32-label": (line("<answer>N=42</answer>"), "correct", "42"),
    "P33-nan": (line("<answer>NaN</answer>"), "unparsed", None),
    "P33-inf": (line("<answer>inf</answer>"), "unparsed", None),
    "P33-infinity": (line("<answer>-Infinity</answer>"), "unparsed", None),
    "P33-∞": (line("<answer>∞</answer>"), "unparsed", None),
    "P33-beyond doubles": (line("<answer>1e999</answer>"), "wrong", "1E+400"),
    "P42": (line("```python\nprint(41)\n```\n<answer>42</answer>"), "correct", "42"),
    "in code": (line("```python\nprint('<answer>42</answer>')\n```"), "no_span", None),
    "in a call": (line("<tool_call>{'code': '<answer>42</answer>'}</tool_call>"), "no_span", None),
    "in a Python fence": (line("<answer>\n```python\n42\n```\n</answer>"), "correct", "42"),
    "in a fence": (line("<answer>\n```\n42\n```\n</answer>"), "correct", "42"),
    "a program": (line("<answer>```python\nprint(42)\n```</answer>"), "no_span", None),
    "in a quoted program": (
        line("> ```python\n> print('<answer>1</answer>')\n> ```\n\n<answer>42</answer>"),
        "correct", "42",
    ),
    "escaped": (line("&lt;answer&gt;42&lt;/answer&gt;"), "correct", "42"),
    "attributes": (line('<answer id="1">42</ answer>'), "correct", "42"),
    "R30": (line("<answer>9**9**9**9</answer> \\boxed{" + "(" * 50_000 + "}"), "unparsed", None),
    "R30-digits": (line(f"<answer>{'9' * 100_000}</answer>"), "wrong", "1E+400"),
    "R30-places": (line(f"<answer>42.{'0' * 100_000}</answer>"), "correct", "42"),
    "R30-exponent": (line("<answer>1e" + "9" * 100_000 + "</answer>"), "wrong", "1E+400"),
    "R30-zeros": (line(f"<answer>{'0' * 100_000}42</answer>"), "correct", "42"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_score(name: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    text, outcome, parsed = CASES[name]
    (found,) = scored([text], tmp_path / "responses", capsysbinary)
    assert (found["outcome"], found["parsed"]) == (outcome, parsed), found
    assert found["score"] == int(outcome == "correct")
    assert found["reason"]


def test_what_is_missing_is_told_apart(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    responses = ["<answer></answer>", "<answer>\n \n</answer>", "I cannot tell.", "", None]
    responses += ["<answer>your answer here</answer>", "<answer>41</answer>", "<answer>x</answer>"]
    lines = [line(response) for response in responses]
    reasons = [found["reason"] for found in scored(lines, tmp_path / "r", capsysbinary)]
    assert reasons[:6] == [
        "the span is empty",
        "the span is blank",
        "the response has no <answer> span",
        "the response is empty",
        "the response is empty",
        "the span is a placeholder, no answer",
    ]
    assert len(set(reasons)) == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"task": "peak_count"}', 'expected "answer"'),
        ("{}", "an empty object"),
        ("{", "no JSON"),
        ("5", "expected a JSON object, found '5'"),
        ("[" * 100_000, "nested too deep"),
        ('{"task": 5, "answer": "1", "response": "x"}', 'expected text as "task", found 5'),
        (line("x", task="cats"), "cats"),
        (line("x", answer="none"), "'none' is no answer to peak_count"),
        (line("x", id=1.5), 'expected text or a whole number as "id"'),
        (line("x", id=True), 'expected text or a whole number as "id"'),
        (line("x", meta=[1]), 'expected an object as "meta"'),
        (line("x", meta="{torn"), 'expected JSON text as "meta"'),
        (line("x", finish_reason=5), 'expected text as "finish_reason"'),
        (line("x")[:-1] + ', "seed": ' + "9" * 5000 + "}", ""),
    ],
)
def test_a_bad_line_stops_before_any_output(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "responses"
    path.write_text(f"{line('<answer>42</answer>')}\n \t\n{text}\n", encoding="utf-8")
    code = run(["score", "--benchmark", "cwi", "--responses", str(path)])
    captured = capsys.readouterr()
    if not words:  # a number of any length is none of our business
        assert (code, captured.out.count("\n")) == (0, 2)
        return
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith(f"pot: {path}, line 3: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_ids_and_meta_of_every_shape(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ids = ["a/ü\n\u2028", 5, None, "", -1]
    metas = [{"n": 1}, '{"n": 1}', "", None, " "]
    lines = [
        line("<answer>42</answer>", id=each, meta=meta)
        for each, meta in zip(ids, metas, strict=True)
    ]
    found = scored(lines, tmp_path / "r", capsysbinary)
    assert [each["id"] for each in found] == ids
    assert [each["score"] for each in found] == [1] * 5


def test_stages_are_shown() -> None:
    score = Score(None, "unscored", None, "no judge", (Stage("llm-judge", "pass", None, "none"),))
    assert result("a", score) == {
        "id": "a",
        "score": None,
        "outcome": "unscored",
        "parsed": None,
        "reason": "no judge",
        "stages": [{"name": "llm-judge", "verdict": "pass", "value": None, "reason": "none"}],
    }


def test_many_lines_from_standard_input() -> None:
    lines = [line(f"<answer>{41 + n % 2}</answer>", id=n) for n in range(200)]
    done = subprocess.run(
        [sys.executable, "-m", "agent", "score", "--benchmark", "cwi", "--responses", "-"],
        input="\ufeff" + "\r\n".join(lines),
        capture_output=True,
        check=True,
        timeout=60,
        encoding="utf-8",
    )
    found = [json.loads(text) for text in done.stdout.splitlines()]
    assert [(each["id"], each["score"]) for each in found] == [(n, n % 2) for n in range(200)]
