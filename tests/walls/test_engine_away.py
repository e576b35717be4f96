"""The Docker engine is not there, goes away in mid-run, or may not be used: R12."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from sandbox.address import engine_address
from tests.runs.kills import endpoint, make_items

ROOT = Path(__file__).resolve().parents[2]
POT = [sys.executable, "-m", "agent"]
AS_NOBODY = """
import os, sys
from sandbox.engine import connect
from sandbox.errors import SandboxUnavailable
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    connect()
except SandboxUnavailable as error:
    print(error)
"""


class Relay:
    """A socket in front of the real engine that can go away, with every stream through it."""

    def __init__(self, path: Path, engine: str) -> None:
        self.path = path
        self.engine = engine
        self._streams: list[socket.socket] = []
        self._pumps: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(100)
        self._thread = threading.Thread(target=self._accept, args=(self._listener,))
        self._thread.start()

    def stop(self) -> None:
        assert self._listener is not None
        assert self._thread is not None
        self.path.unlink()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        for pump in self._pumps:
            pump.join()
        for stream in self._streams:
            stream.close()
        self._streams.clear()
        self._pumps.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.engine)
            self._streams += [near, far]
            for ends in ((near, far), (far, near)):
                pump = threading.Thread(target=_pump, args=ends)
                pump.start()
                self._pumps.append(pump)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(docker_wall: object) -> Iterator[Relay]:
    assert docker_wall
    folder = Path(tempfile.mkdtemp(prefix="pot-relay-"))  # a socket's path must be short
    made = Relay(folder / "docker.sock", engine_address().removeprefix("unix://"))
    made.start()
    yield made
    made.stop()
    shutil.rmtree(folder)


@pytest.mark.docker
def test_an_engine_that_restarts_in_mid_run(relay: Relay, tmp_path: Path) -> None:
    """Samples that were under way get new boxes; none is scored wrong, no reply is asked twice."""
    items, log, out = make_items(tmp_path / "items"), tmp_path / "log.jsonl", tmp_path / "run"
    served = ["--data", str(items), "--model", "scripted", "--delay", "0.1", "--log", str(log)]
    with endpoint(*served) as url:
        line = [*POT, "run", "cwi", "--data", str(items), "--model", "m", "--base-url", url]
        line += ["--sandbox", "docker", "--workers", "3", "--out", str(out), "--json"]
        run = subprocess.Popen(
            line,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "DOCKER_HOST": f"unix://{relay.path}"},
        )
        deadline = time.monotonic() + 60
        while not list(out.glob("samples/*.json")) and time.monotonic() < deadline:
            time.sleep(0.02)
        relay.stop()
        time.sleep(3)
        relay.start()
        told, said = run.communicate(timeout=100)
    assert run.returncode == 0
    summary = json.loads(told)
    assert summary["correct"] == summary["owed"] == 8
    assert "trying again in a new box" in said
    assert "Traceback" not in said
    asked = [json.loads(text)["sha256"] for text in log.read_text().splitlines()]
    assert len(asked) == len(set(asked))
    filters = ["--filter", f"label=potrunner.pid={run.pid}"]
    left = subprocess.run(["docker", "ps", "-aq", *filters], capture_output=True, check=True)
    assert left.stdout == b""


def test_no_engine_at_the_start(tmp_path: Path) -> None:
    """One line before any request."""
    cells = tmp_path / "cells.py"
    cells.write_text("1")
    for command in (["exec", str(cells)], ["run", "cwi", "--data", "nowhere"]):
        done = subprocess.run(
            [*POT, *command, "--sandbox", "docker"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "DOCKER_HOST": "unix:///nonexistent.sock"},
            check=False,
        )
        assert done.returncode in (2, 3)
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""
    assert "nowhere" in done.stderr


@contextlib.contextmanager
def listening(group: int) -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pot-socket-"))
    folder.chmod(0o755)
    path = folder / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        os.chown(path, 0, group)
        path.chmod(0o660)
        yield path
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody without rights")
@pytest.mark.parametrize(
    ("group", "words"), [(0, "only root may use"), (1, "sudo usermod -aG daemon $USER")]
)
def test_a_socket_that_this_user_may_not_use(group: int, words: str) -> None:
    with listening(group) as path:
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "DOCKER_HOST": f"unix://{path}"},
            check=True,
        )
    assert "Permission denied" in done.stdout
    assert words in done.stdout
    assert done.stdout.count("\n") == 1
