"""`pot run` as people use it: real processes, a real endpoint; one clear line for each mistake."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run as pot
from agent.rundir import RunDir
from tests.runs.test_rundir import small_disk

POT = [sys.executable, "-m", "agent"]


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    assert pot(["build", "cwi", "--tasks", "swatch_rgb", "--count", "4", "--out", str(folder)]) == 0
    return folder


@contextmanager
def endpoint(*arguments: str) -> Generator[str]:
    with subprocess.Popen(
        [*POT, "mock-endpoint", *arguments], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def looking(items: Path, url: str, out: Path, *more: str) -> list[str]:
    """A run without a sandbox: one request a sample, answered with the gold."""
    plain = ["run", "cwi", "--data", str(items), "--model", "m", "--base-url", url]
    return [*plain, "--arm", "look", "--out", str(out), *more]


def requests(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_run_over_http_its_json_and_its_folder(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    with endpoint("--data", str(items), "--model", "gold") as url:
        code = pot(
            looking(items, url, out, "--repeats", "2", "--json", "--header", "X-Key=hidden1")
        )
    told = json.loads(capfd.readouterr().out)
    assert code == 0
    assert told == json.loads((out / "summary.json").read_text())
    assert (told["owed"], told["scored"], told["correct"]) == (8, 8, 8)
    assert told["by_task"]["swatch_rgb"]["interval"] == told["interval"]
    about = json.loads((out / "config.json").read_text())
    assert about["config"]["dialect"] == "tools"
    assert about["config"]["headers"] == {"X-Key": "***"}
    assert about["packages"]
    assert len(about["data_sha256"]) == len(about["prompt_sha256"]) == 64
    everything = [path for path in out.rglob("*") if path.is_file() and path.name != "report.html"]
    assert not [path for path in everything if b"hidden1" in path.read_bytes()]
    assert (out / "report.html").stat().st_size > 1000
    # A resume needs nothing else, and finds nothing to do.
    assert pot(["run", "--resume", str(out), "--header", "X-Key=hidden1", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == told
    assert pot(["run", "--resume", str(out)]) == 2
    assert "give --header X-Key=… again" in capfd.readouterr().err


def test_kill_9_at_random_moments_then_resume(items: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "run", tmp_path / "log.jsonl"
    dice = random.Random(20)
    repeats, workers, kills = 12, 4, 0
    served = ("--data", str(items), "--model", "gold", "--delay", "0.15", "--log", str(log))
    settings = ("--repeats", str(repeats), "--workers", str(workers), "--seed", "1")
    with endpoint(*served) as url:
        arguments = looking(items, url, out, *settings)
        for _ in range(5):
            process = subprocess.Popen([*POT, *arguments], stderr=subprocess.DEVNULL)
            records = len(list(out.glob("samples/*.json")))
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if len(list(out.glob("samples/*.json"))) > records:
                    time.sleep(dice.uniform(0, 0.4))
                    break
                time.sleep(0.01)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.wait(60)
            arguments = ["run", "--resume", str(out)]
        done = subprocess.run([*POT, *arguments, "--json"], capture_output=True, timeout=100)
    assert kills >= 2
    told = json.loads(done.stdout)
    assert (told["owed"], told["correct"], told["pending"]) == (4 * repeats, 4 * repeats, 0)
    found = [(r.id, r.repeat) for r in RunDir.open(out).results(pictures=True)]
    assert len(found) == len(set(found)) == 4 * repeats
    asked = Counter(entry["sha256"] for entry in requests(log))
    assert len(asked) == 4 * repeats, "each sample and repeat has a request of its own"
    again = sum(times - 1 for times in asked.values())
    assert again <= kills * workers, "only what was in flight at a kill is asked again"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_run_that_can_be_resumed(
    items: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "run"
    with endpoint("--data", str(items), "--model", "gold", "--delay", "0.1") as url:
        arguments = looking(items, url, out, "--repeats", "30", "--workers", "2")
        process = subprocess.Popen([*POT, *arguments], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not list(out.glob("samples/*.json")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == f"pot: interrupted; go on with: pot run --resume {out}"
    summary = json.loads((out / "summary.json").read_text())
    records = len(list(out.glob("samples/*.json")))
    assert summary["scored"] == records >= 1
    assert summary["pending"] == 120 - records


def test_dry_run_leaves_nothing(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = ["run", "cwi", "--data", str(items), "--sandbox", "process", "--dry-run"]
    assert pot([*plain, "--repeats", "2", "--limit", "3"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["owed"] == told["to_run"] == 6
    assert told["by_task"] == {"swatch_rgb": 6}
    assert told["config"]["sandbox"] == "process"
    assert list(tmp_path.iterdir()) == []


def test_config_file_under_flags(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'benchmark = "cwi"\ndata = "{items}"\nmax-turns = 7\nsandbox = "process"\n')
    assert pot(["run", "--config", str(file), "--max-turns", "3", "--dry-run"]) == 0
    config = json.loads(capfd.readouterr().out)["config"]
    assert (config["max_turns"], config["sandbox"]) == (3, "process")
    file.write_text('benchmark = "cwi"\nmax_turn = 7\n')
    assert pot(["run", "--config", str(file)]) == 2
    assert capfd.readouterr().err == (
        f"pot: {file}: unknown setting 'max_turn'; did you mean max_turns?\n"
    )


BAD: list[tuple[list[str], int, str]] = [
    ([], 2, "settings: expected a benchmark, found none; see `pot list`"),
    (["cwi"], 2, "expected a data folder for cwi, found none"),
    (["cwi", "--data", "nowhere"], 2, "nowhere"),
    (["nmr2"], 2, "expected a benchmark, found 'nmr2'"),
    (["cwi", "--max-turns", "0"], 2, "--max-turns expected a finite number, at least 1, found 0"),
    (["cwi", "--arm", "see"], 2, "--arm expected 'code', 'look' or 'blind', found 'see'"),
    (["cwi", "--extra-body", "{"], 2, "--extra-body: not JSON"),
    (["cwi", "--header", "x"], 2, "--header: expected NAME=VALUE, found 'x'"),
    (["cwi", "--skills", "no.md"], 2, "expected --skills with a text, found no.md: No such file"),
    (["cwi", "--config", "no.toml"], 2, "--config no.toml: cannot be read"),
    (["--resume", "nowhere"], 2, "nowhere: expected a run directory (with config.json), found no"),
    (["--resume", "a", "--out", "b"], 2, "--out: a resumed run stays where it is"),
    (["cwi", "--frobnicate"], 2, "No such option"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), BAD, ids=lambda v: str(v)[:40])
def test_bad_input_is_one_line(
    arguments: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pot(["run", *arguments]) == code
    found = capfd.readouterr()
    assert found.out == ""
    assert found.err.startswith("pot: ")
    assert found.err.count("\n") == 1
    assert words in found.err
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def one_line(found: subprocess.CompletedProcess[str] | str) -> str:
    text = found if isinstance(found, str) else found.stderr
    assert "Traceback" not in text
    lines = [line for line in text.splitlines() if line.startswith("pot: ")]
    assert len(lines) == 1, text
    return lines[0]


def test_refused_key_dead_endpoint_and_missing_key_leave_nothing(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    out = tmp_path / "run"
    with endpoint("--data", str(items), "--model", "gold", "--api-key", "right") as url:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-wrong")
        assert pot(looking(items, url, out)) == 3
    line = one_line(capfd.readouterr().err)
    assert "401" in line
    assert "sk-very-wrong" not in line
    assert not out.exists()
    assert pot(looking(items, url, out)) == 3, "the server is gone now"
    assert "is the server running?" in one_line(capfd.readouterr().err)
    assert not out.exists()
    monkeypatch.delenv("OPENAI_API_KEY")
    arguments = ["run", "cwi", "--data", str(items), "--model", "gpt", "--arm", "look"]
    assert pot([*arguments, "--out", str(out)]) == 3
    assert "OPENAI_API_KEY" in one_line(capfd.readouterr().err)
    assert not out.exists()


def test_an_address_in_the_environment_is_bad_input_as_well(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000/v1")
    for command in (["run", "cwi", "--data", str(items)], ["ask", "Why?"]):
        assert pot([*command, "--model", "m", "--arm", "look"]) == 2
        line = one_line(capfd.readouterr().err)
        assert line.startswith("pot: OPENAI_BASE_URL from environment: expected an address such as")
    assert list(tmp_path.iterdir()) == []


def test_a_web_page_in_place_of_an_endpoint_ends_the_run_soon(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, log, page = tmp_path / "run", tmp_path / "log.jsonl", tmp_path / "page.json"
    body = "<!doctype html><html><body><h1>Sign in</h1> to the proxy</body></html>"
    html = {"turn": 1, "body": body, "headers": {"content-type": "text/html"}}
    page.write_text(json.dumps([html]))
    with endpoint("--scenario", str(page), "--log", str(log)) as url:
        assert pot(looking(items, url, out, "--workers", "1")) == 3
    line = one_line(capfd.readouterr().err)
    for words in ("(text/html): a web page: Sign in to the proxy", "check --base-url", "/v1"):
        assert words in line
    assert len(requests(log)) == 3
    assert not out.exists()


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_why_samples_failed_is_said(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], form: list[str]
) -> None:
    steps = [
        {"answer": "1,2,3"},
        {"status": 400, "body": {"error": {"message": "the first reason"}}},
        {"status": 400, "body": {"error": {"message": "another"}}},
        {"status": 400, "body": {"error": {"message": "the first reason"}}},
    ]
    scenario = tmp_path / "s.json"
    scenario.write_text(json.dumps(steps))
    with endpoint("--scenario", str(scenario)) as url:
        assert pot(looking(items, url, tmp_path / "run", "--workers", "1", *form)) == 1
    found = capfd.readouterr()
    told = found.err if form else found.out
    assert "model_api: m: HTTP 400: the first reason (and 1 other message)\n" in told
    page = (tmp_path / "run/report.html").read_text("utf-8")
    assert '<p class="why">model_api: m: HTTP 400: the first reason (and 1 other message)' in page


def test_an_endpoint_without_a_model_is_not_the_reference_programs(
    items: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert pot(["run", "cwi", "--data", str(items)]) == 2
    assert capfd.readouterr().err.startswith("pot: expected --model NAME at the endpoint")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["list"], ["version"], ["parse", "-"]])
def test_a_full_standard_output_is_one_line(command: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*POT, *command], stdout=full, stderr=subprocess.PIPE, input=b"x", check=False
        )
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1
    assert "No space left" in done.stderr.decode()


def test_no_daemon_and_no_image_are_one_line(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = [
        "run",
        "cwi",
        "--data",
        str(items),
        "--sandbox",
        "docker",
        "--out",
        str(tmp_path / "r"),
    ]
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    assert pot(plain) == 3
    assert "docker" in one_line(capfd.readouterr().err).lower()
    monkeypatch.delenv("DOCKER_HOST")
    if (
        shutil.which("docker")
        and not subprocess.run(["docker", "info"], capture_output=True).returncode
    ):
        assert pot([*plain, "--image-tag", "potrunner-no-such-image"]) == 3
        assert "pot image build" in one_line(capfd.readouterr().err)
    assert not (tmp_path / "r").exists()


def test_resume_with_other_settings_or_data_is_refused(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, data = tmp_path / "run", tmp_path / "data"
    shutil.copytree(items, data)
    with endpoint("--data", str(items), "--model", "gold") as url:
        assert pot(looking(data, url, out)) == 0
        capfd.readouterr()
        assert pot(["run", "--resume", str(out), "--max-turns", "9"]) == 2
        assert "--max-turns 9: the run was begun with 5" in one_line(capfd.readouterr().err)
        assert pot(["run", "--resume", str(out), "--workers", "1"]) == 0
        capfd.readouterr()
        assert pot(looking(data, url, out)) == 2
        assert "--resume" in one_line(capfd.readouterr().err)
        shutil.rmtree(data)
        build = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "4", "--out", str(data)]
        assert pot([*build, "--seed", "5"]) == 0
        capfd.readouterr()
        assert pot(["run", "--resume", str(out)]) == 2
        assert "the data have changed" in one_line(capfd.readouterr().err)


def test_a_full_disk_ends_the_run_and_resume_finishes_it(items: Path, tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "small", "3m") as disk,
        endpoint("--data", str(items), "--model", "gold") as url,
    ):
        ballast = disk / "ballast"
        ballast.write_bytes(b"\0" * 1_900_000)
        out = disk / "run"
        arguments = looking(items, url, out, "--repeats", "30", "--workers", "2")
        done = subprocess.run([*POT, *arguments], capture_output=True, text=True, timeout=100)
        assert done.returncode in (1, 3)
        assert "no space left" in one_line(done)
        before = len(list(out.glob("samples/*.json")))
        assert before < 120
        ballast.unlink()
        again = subprocess.run(
            [*POT, "run", "--resume", str(out), "--json"],
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert json.loads(again.stdout)["correct"] == 120, again.stderr


def test_scripted_model_in_a_real_box(items: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    plain = ["run", "cwi", "--data", str(items), "--limit", "1", "--out", str(out)]
    done = subprocess.run(
        [*POT, *plain, "--sandbox", "process"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert "All 1 owed samples are scored." in done.stdout
    assert f"Report: {out}/report.html" in done.stdout
    result = next(RunDir.open(out).results(pictures=True))
    assert result.trajectory
    assert result.trajectory.turns[0].executions
    assert os.path.isabs(json.loads((out / "config.json").read_text())["config"]["data"])  # noqa: PTH117
