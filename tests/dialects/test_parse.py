"""`pot parse`: the shapes it takes, the lines it gives, the codes it ends with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from agent.dialects.parse import describe, replies
from agent.messages import Reply

CALL = {"id": "a", "type": "function", "function": {"name": "python", "arguments": '{"code": "x"}'}}


def line(
    code: list[str] | None = None,
    answer: str | None = None,
    malformed: str | None = None,
    reasoning: str | None = None,
) -> dict[str, Any]:
    return {"code": code or [], "answer": answer, "malformed": malformed, "reasoning": reasoning}


def parse(
    capsysbinary: pytest.CaptureFixture[bytes], path: Path, *flags: str
) -> list[dict[str, Any]]:
    assert run(["parse", *flags, str(path)]) == 0
    captured = capsysbinary.readouterr()
    assert captured.err == b""
    return [json.loads(text) for text in captured.out.splitlines()]


COMPLETION = {
    "id": "chatcmpl-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "<answer>7"},
        }
    ],
}
SHAPES: dict[str, tuple[object, list[dict[str, Any]]]] = {
    "text": ("so ```py x()``` <answer>1</answer>", [line(["x()"], "1")]),
    "text with a stray brace": ('{"role": <answer>1</answer>', [line(answer="1")]),
    "bare": ({"role": "assistant", "content": "<answer>é</answer>"}, [line(answer="é")]),
    "content alone": ({"content": "<answer></answer>"}, [line(answer="")]),
    "parts": (
        {"content": [{"type": "text", "text": "<answer>1</answer>"}], "reasoning": "so"},
        [line(answer="1", reasoning="so")],
    ),
    "calls alone": ({"tool_calls": [CALL]}, [line(["x"])]),
    "null content": ({"role": "assistant", "content": None, "tool_calls": [CALL]}, [line(["x"])]),
    "wrapped": (
        {"finish_reason": "stop", "message": {"content": "<answer>0.37", "reasoning_content": "r"}},
        [line(answer="0.37", reasoning="r")],
    ),
    "whole completion": (COMPLETION, [line(answer="7")]),
    "list": (
        [{"content": "<answer>1</answer>"}, "<answer>2</answer>", COMPLETION],
        [line(answer="1"), line(answer="2"), line(answer="7")],
    ),
    "empty list": ([], []),
    "thinking in the text": (
        {"content": "<think>hmm <answer>1</answer></think><answer>2</answer>"},
        [line(answer="2", reasoning="hmm <answer>1</answer>")],
    ),
    "answer beside code": (
        {"content": "```python\nx()\n```\n<answer>1</answer>"},
        [line(["x()"], "1")],
    ),
    "refusal": (
        {"content": None, "refusal": "I can't."},
        [line(malformed="The model refused: I can't.")],
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    source, lines = SHAPES[name]
    path = tmp_path / "reply"
    path.write_text(source if isinstance(source, str) else json.dumps(source), encoding="utf-8")
    assert parse(capsysbinary, path) == lines


@pytest.mark.parametrize(
    "source",
    [
        "nothing here",
        "",
        '{"content": "nothing"}',
        '{"other": 1}',
        "[5]",
        '["\\ud800"]',
        "[" * 9999,
    ],
)
def test_malformed_only_where_there_is_nothing(
    source: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "reply"
    path.write_text(source, encoding="utf-8")
    (found,) = parse(capsysbinary, path)
    assert found["malformed"]
    assert (found["code"], found["answer"], found["reasoning"]) == ([], None, None)


@pytest.mark.parametrize(
    ("dialect", "code"),
    [("auto", ["t()"]), ("fenced", ["f()"]), ("tags", ["t()"]), ("tools", [])],
)
def test_dialects(
    dialect: str, code: list[str], tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "reply"
    path.write_text("```python\nf()\n```\n<code>t()</code>")
    (found,) = parse(capsysbinary, path, "--dialect", dialect)
    assert found["code"] == code


def test_standard_input_and_nothing_else_on_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent", "parse"],
        input="\ufeff<answer>ä</answer>".encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == line(answer="ä")
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["missing"], "missing: No such file"),
        (["."], "."),
        (["latin"], "UTF-8"),
        (["--answer", "boxed", "latin"], "--answer tag"),
        (["--choices", "A,B", "latin"], "--choices"),
        (["--dialect", "xml", "latin"], "xml"),
    ],
)
def test_bad_input_is_one_line(
    flags: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    monkeypatch.chdir(tmp_path)
    assert run(["parse", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("pot: ")


@pytest.mark.parametrize("wrapping", ["<code></code>", "<code>\n</code>", "```python\n```"])
def test_a_wrapping_with_nothing_in_it_is_no_code(wrapping: str) -> None:
    call = {"name": "python", "arguments": json.dumps({"code": wrapping})}
    for reply in (
        Reply(f"````python\n{wrapping}\n````", finish_reason="stop"),
        Reply("``` python <code></code>```"),
        *replies(json.dumps({"role": "assistant", "tool_calls": [{"function": call}]})),
    ):
        found = describe(reply)
        assert found["code"] == []
        assert found["malformed"] is not None
