"""`pot doctor` as a person and as a program meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.cli import run
from agent.cli.doctor import LIMITS
from sandbox.doctor import facts


@pytest.mark.bubblewrap
@pytest.mark.usefixtures("bubblewrap_wall")
def test_without_docker(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-test")
    monkeypatch.chdir(tmp_path)
    assert run(["doctor"]) == 0
    shown = capfd.readouterr().out
    assert "auto     bubblewrap" in shown
    assert "docker: does not work" in shown
    assert "missing  docker: expected a Docker engine at unix:///nonexistent.sock" in shown
    assert "OPENAI_API_KEY is set" in shown
    assert "secret" not in shown
    for words in LIMITS.values():
        assert words in shown


@pytest.mark.docker
@pytest.mark.usefixtures("docker_wall")
def test_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["auto"] == "docker"
    assert found["image"]["digest"].startswith("sha256:")
    assert set(found["walls"]) == {"docker", "bubblewrap", "process"}
    docker = found["walls"]["docker"]
    assert docker["works"]
    assert docker["enforced"]["network"] == "yes"
    # A limit is `yes` or says why not: never empty.
    for wall in found["walls"].values():
        assert all(wall["enforced"].values())
        assert wall["works"] != bool(wall["problem"])


def test_nothing_isolates(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert run(["doctor"]) == 3
    shown = capfd.readouterr()
    assert "Traceback" not in shown.out + shown.err


def test_facts_are_plain_data() -> None:
    found = facts()
    assert json.loads(json.dumps(found)) == found
    assert set(found["walls"]) == {"docker", "bubblewrap"}
