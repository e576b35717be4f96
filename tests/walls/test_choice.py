"""Choosing a wall: one clear line when it cannot be had, and never the process wall by itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.errors import SandboxUnavailable
from sandbox.spec import BoxSpec, WallName
from sandbox.wall import Wall
from sandbox.walls import choose, probe

DEAD = "unix:///nonexistent.sock"


@pytest.fixture
def not_docker(tmp_path: Path) -> Iterator[str]:
    """A socket where something listens that is no Docker engine."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def answer() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client, contextlib.suppress(OSError):  # some callers hang up at once
                    client.recv(1000)
                    client.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"unix://{path}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def one_line(error: pytest.ExceptionInfo[SandboxUnavailable]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert "Traceback" not in text
    return text


def test_a_dead_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", DEAD)
    with pytest.raises(SandboxUnavailable) as error:
        choose("docker")
    text = one_line(error)
    assert DEAD in text
    assert "No such file" in text
    assert "--sandbox bubblewrap" in text


def test_an_engine_that_is_none(not_docker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", not_docker)
    with pytest.raises(SandboxUnavailable) as error:
        choose("docker")
    assert "expected a Docker engine" in one_line(error)


@pytest.mark.parametrize("address", ["nonsense", "ftp://x", "tcp://127.0.0.1:1"])
def test_bad_addresses(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(SandboxUnavailable) as error:
        choose("docker")
    assert address in one_line(error)


@pytest.mark.docker
@pytest.mark.usefixtures("docker_wall")
def test_a_missing_image() -> None:
    with pytest.raises(SandboxUnavailable, match="pot image build"):
        choose("docker", "no-such-image:ever")


@pytest.mark.bubblewrap
@pytest.mark.usefixtures("bubblewrap_wall")
def test_auto_without_docker_is_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", DEAD)
    assert choose("auto").name == "bubblewrap"


def test_auto_prefers_docker(docker_wall: Wall) -> None:
    assert choose("auto").name == docker_wall.name == "docker"


def test_auto_never_gives_up_isolation(tmp_path: Path) -> None:
    """Where no isolating wall works `auto` stops, says why for each and names the way out."""
    code = (
        "from sandbox.errors import SandboxUnavailable\n"
        "from sandbox.walls import choose\n"
        "try:\n  print(choose('auto').name)\n"
        "except SandboxUnavailable as error:\n  print(error)\n"
    )
    root = Path(__file__).resolve().parents[2]
    environment = {
        "DOCKER_HOST": DEAD,
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "file"),
        "PYTHONPATH": str(root),
    }
    (tmp_path / "file").write_text("")  # no cache home, hence no box of any kind
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    text = done.stdout.strip()
    assert "\n" not in text
    assert "no isolating sandbox works here" in text
    assert "docker: " in text
    assert "bubblewrap: " in text
    assert text.endswith("--sandbox process")


@pytest.mark.parametrize("name", ["docker", "bubblewrap", "process"])
def test_probe_gives_a_wall_or_a_problem(name: WallName) -> None:
    found = probe(name)
    assert (found.wall is None) == bool(found.problem)


@pytest.mark.docker
def test_an_unknown_runtime(docker_wall: Wall) -> None:
    async def opened() -> None:
        async with docker_wall.open(BoxSpec(runtime="no-such-runtime")):
            raise AssertionError("it must not open")

    with pytest.raises(SandboxUnavailable, match="no runtime 'no-such-runtime'; it has: "):
        asyncio.run(opened())
