"""`pot mock-endpoint` as a process, and its bad input."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from agent.cli import run
from agent.endpoint.scenario import Step, read_scenario


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGTERM, 0, ""), (signal.SIGINT, 130, "pot: interrupted\n")],
)
def test_a_process_from_its_first_line_to_the_signal(
    tmp_path: Path, number: signal.Signals, code: int, said: str
) -> None:
    scenario, log = tmp_path / "scenario.json", tmp_path / "log.jsonl"
    scenario.write_text('[{"answer": "42"}]')
    command = [sys.executable, "-m", "agent", "mock-endpoint", "--scenario", str(scenario)]
    with subprocess.Popen(
        [*command, "--log", str(log), "--api-key", "sk-x"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        headers = {"authorization": "Bearer sk-x"}
        response = httpx2.post(f"{url}/chat/completions", json=body, headers=headers)
        # The line is on disk before the answer arrives.
        assert json.loads(log.read_text())["answered"] is True
        process.send_signal(number)
        rest, errors = process.communicate(timeout=30)
    assert response.json()["choices"][0]["message"]["content"] == "<answer>42</answer>"
    assert (process.returncode, rest, errors) == (code, "", said)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--model", "gold"], "--data"),
        (["--model", "gold", "--data", "nowhere"], "nowhere"),
        (["--scenario", "nowhere"], "expected a scenario file"),
        (["--fail-status", "200"], "--fail-status"),
        (["--fail-rate", "2"], "--fail-rate"),
        (["--log", "nowhere/log"], "nowhere/log"),
        (["--model", "other"], "other"),
    ],
)
def test_bad_input_is_one_line(
    flags: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["mock-endpoint", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


DOC = (Path(__file__).parents[2] / "docs/scenarios.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", re.findall(r"^```json\n(.*?)^```", DOC, re.M | re.S))
def test_the_examples_of_the_page_are_scenarios(example: str, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(example, encoding="utf-8")
    assert len(read_scenario(file)) == len(json.loads(example))
    lines = tmp_path / "s.jsonl"
    lines.write_text("\n".join(json.dumps(step) for step in json.loads(example)) + "\n")
    assert read_scenario(lines) == read_scenario(file)


def test_the_page_has_every_key_of_a_step_with_its_default() -> None:
    named = dict(re.findall(r"^\| `(\w+)` \|(?: (.*?) \|)?", DOC, re.M))
    assert named.keys() == {field.name for field in dataclasses.fields(Step)}
    for name, default in {"status": "200", "finish_reason": '`"stop"`', "times": "1"}.items():
        assert named[name] == default
