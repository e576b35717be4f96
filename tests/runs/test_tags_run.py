"""The dialect `tags` in whole runs: real processes, real HTTP, a real kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run as pot


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    assert pot(["build", "cwi", "--tasks", "swatch_rgb", "--count", "2", "--out", str(folder)]) == 0
    return folder


@contextmanager
def endpoint(*arguments: str) -> Generator[str]:
    command = [sys.executable, "-m", "agent", "mock-endpoint", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((out / "samples").iterdir())]


def said(record: dict[str, Any], role: str) -> list[str]:
    """The texts of a record's messages of one role, in order."""
    sent = [message for turn in record["turns"] for message in turn["sent"]]
    return [
        "\n".join(part["text"] for part in message["parts"] if "text" in part)
        for message in sent
        if message["role"] == role
    ]


def test_reference_programs_solve_items_in_tags(items: Path, tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "run"
    served = ["--data", str(items), "--model", "scripted", "--dialect", "tags", "--log", str(log)]
    with endpoint(*served) as url:
        asked = ["run", "cwi", "--data", str(items), "--model", "m", "--base-url", url]
        wall = ["--dialect", "tags", "--sandbox", "process", "--out", str(out)]
        assert pot([*asked, *wall]) == 0
    assert [record["outcome"] for record in records(out)] == ["correct"] * 2
    for record in records(out):
        first, *_ = said(record, "assistant")
        assert "<code>" in first
        assert first.endswith("</code>")
        assert said(record, "user")[0].startswith("Output:\n")
        assert not any(message.get("tool_calls") for message in record["turns"][0]["sent"])
    assert json.loads((out / "config.json").read_text())["config"]["dialect"] == "tags"
    assert len(log.read_text().splitlines()) == sum(len(r["turns"]) for r in records(out))


CUT_OFF = "I will compute it.\n<code>\n```python\nx = 6\nprint(x * 7)\n```\n"
KEPT = "<code>y = x + 1</code> and <code>\nprint(y)\n</code>"
MADE_UP = (
    "<code>\nprint('real', y)\n</code>\n<interpreter>\nmade up 99\n<answer>98</answer>\n"
    "</interpreter>\nSo <answer>99</answer>"
)
IN_THINKING = "<think>I could write <code>print(1)"
LAST = "It is <answer>7</answer>."


def test_servers_that_strip_the_stop_string_and_models_that_make_outputs_up(
    items: Path, tmp_path: Path
) -> None:
    scenario, out = tmp_path / "scenario.jsonl", tmp_path / "run"
    texts = (CUT_OFF, KEPT, MADE_UP, IN_THINKING, LAST)
    steps = [json.dumps({"text": text, "turn": turn}) for turn, text in enumerate(texts, 1)]
    scenario.write_text("\n".join(steps))
    with endpoint("--scenario", str(scenario), "--dialect", "tags") as url:
        asked = ["run", "cwi", "--data", str(items), "--model", "m", "--base-url", url]
        wall = ["--dialect", "tags", "--sandbox", "process", "--limit", "1", "--out", str(out)]
        assert pot([*asked, *wall]) == 0
    (record,) = records(out)
    assert (record["stop"], record["answer"]) == ("answered", "7")
    first, second, third, fourth, _ = said(record, "assistant")
    assert first == CUT_OFF + "</code>"
    assert (second, third, fourth) == (KEPT, MADE_UP, IN_THINKING)
    outputs = said(record, "user")
    assert "Output:\n42" in outputs[0]
    assert "Output of block 1:\n(no output)\nOutput of block 2:\n7" in outputs[1]
    assert "Output:\nreal 7" in outputs[2]
    assert "cut in reasoning" in outputs[3]
    assert [len(turn["executions"]) for turn in record["turns"]] == [1, 2, 1, 0, 0]


def test_an_answer_beside_code_stands_where_nothing_follows(items: Path, tmp_path: Path) -> None:
    scenario, out = tmp_path / "scenario.jsonl", tmp_path / "run"
    steps = [{"text": MADE_UP.replace("y", "5")}, {"text": "Hm."}]
    scenario.write_text("\n".join(map(json.dumps, steps)))
    with endpoint("--scenario", str(scenario), "--dialect", "tags") as url:
        asked = ["run", "cwi", "--data", str(items), "--model", "m", "--base-url", url]
        wall = ["--dialect", "tags", "--sandbox", "process", "--limit", "1", "--max-turns", "2"]
        assert pot([*asked, *wall, "--out", str(out)]) == 0
    (record,) = records(out)
    assert (record["stop"], record["answer"]) == ("max_turns", "99")
