"""`pot mock-endpoint` as a process, and its bad input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from agent.cli import run


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
