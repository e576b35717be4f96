"""Commands ended by a signal, once and twice, or by the end of their terminal: one line, exit 130,
nothing left. R09."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.docker import DockerWall
from sandbox.reap_child import marked_processes
from sandbox.wall import Wall
from tests.runs.kills import endpoint, make_items

ROOT = Path(__file__).resolve().parents[2]
POT = [sys.executable, "-m", "agent"]
INTERRUPTED = "pot: interrupted\n"
STUBBORN = """
import asyncio, sys, time
from agent.signals import run_async

async def work():
    try:
        print("on", flush=True)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(60)

run_async(work())
"""
LOADING = """
import asyncio, time
from agent import signals

async def work():
    print("on", flush=True)
    await asyncio.to_thread(time.sleep, 60)

try:
    with signals.handled() as ending:
        signals.run_async(work())
except signals.Interrupted:
    signals.leave_at_once()
"""


def start(arguments: list[str], **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # pyright: ignore[reportUnknownVariableType, reportCallIssue]
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
        **more,  # pyright: ignore[reportArgumentType]
    )


def end(process: subprocess.Popen[str], number: int, gap: float | None = None) -> tuple[int, str]:
    """Exit code and standard error, after the signal to the whole group, as a terminal's goes."""
    os.killpg(process.pid, number)
    if gap is not None:
        time.sleep(gap)
        if process.poll() is None:
            os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def boxes(wall: Wall | None, pid: int) -> list[str]:
    mine = f".{pid}."
    left = [str(found) for found, owner in marked_processes() if mine in owner]
    if isinstance(wall, DockerWall):
        filters = {"label": f"potrunner.pid={pid}"}
        left += map(str, wall.api.containers(all=True, filters=filters))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return left


@pytest.fixture(
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ]
)
def isolating(request: pytest.FixtureRequest) -> Wall:
    return request.getfixturevalue(f"{request.param}_wall")


@pytest.mark.parametrize("gap", [None, 0.2])
def test_exec_in_the_middle_of_a_cell(isolating: Wall, gap: float | None, tmp_path: Path) -> None:
    cells = tmp_path / "cells.py"
    cells.write_text("print(1)\n# %%\nimport time; time.sleep(60)\n")
    process = start([*POT, "exec", str(cells), "--sandbox", isolating.name])
    assert process.stdout
    assert json.loads(process.stdout.readline())["status"] == "ok"
    assert boxes(isolating, process.pid)
    assert end(process, signal.SIGINT, gap) == (130, INTERRUPTED)
    assert boxes(isolating, process.pid) == []


@pytest.mark.bubblewrap
@pytest.mark.parametrize("delay", [0.3, 0.6, 1.0, 1.5])
def test_exec_while_it_starts(bubblewrap_wall: Wall, delay: float, tmp_path: Path) -> None:
    cells = tmp_path / "cells.py"
    cells.write_text("import time; time.sleep(60)\n")
    process = start([*POT, "exec", str(cells), "--sandbox", "bubblewrap"])
    time.sleep(delay)
    assert end(process, signal.SIGINT, 0.1) == (130, INTERRUPTED)
    assert boxes(bubblewrap_wall, process.pid) == []


def test_other_commands(tmp_path: Path) -> None:
    photo = tmp_path / "photo.png"
    photo.write_bytes(b"no picture")
    build = [*POT, "build", "cwi", "--out", str(tmp_path / "out")]
    doctor = [*POT, "doctor"]
    mock = [*POT, "mock-endpoint"]
    for command, delay in ((build, 1.5), (doctor, 1.0), (mock, 1.5)):
        process = start(command)
        time.sleep(delay)
        code, errors = end(process, signal.SIGINT, 0.2)
        assert (code, errors.count("\n")) == (130, 1), (command, errors)
        assert errors.startswith("pot: interrupted"), command
        assert boxes(None, process.pid) == []
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_items(tmp_path_factory.mktemp("interrupts") / "items")


@pytest.fixture
def url(items: Path) -> Iterator[str]:
    served = ["--data", str(items), "--model", "scripted", "--delay", "0.1"]
    with endpoint(*served) as found:
        yield found


def running(items: Path, url: str, wall: str, out: Path, repeats: int = 20) -> list[str]:
    line = [*POT, "run", "cwi", "--data", str(items), "--model", "m", "--base-url", url]
    line += ["--sandbox", wall, "--workers", "2", "--repeats", str(repeats), "--out", str(out)]
    return line


def wait_for_records(out: Path, check: Callable[[], bool] = lambda: True) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and check():
        count = len(list(out.glob("samples/*.json")))
        if count:
            return count
        time.sleep(0.05)
    raise AssertionError("no record came")


def can_be_resumed(out: Path) -> bool:
    done = subprocess.run(
        [*POT, "run", "--resume", str(out), "--dry-run"], capture_output=True, cwd=ROOT, check=False
    )
    told = json.loads(done.stdout)
    return told["to_run"] + len(list(out.glob("samples/*.json"))) == told["owed"]


@pytest.mark.parametrize(
    ("name", "number", "gap"),
    [
        pytest.param("docker", signal.SIGINT, 0.2, marks=pytest.mark.docker),
        pytest.param("docker", signal.SIGHUP, None, marks=pytest.mark.docker),
        pytest.param("bubblewrap", signal.SIGINT, 0.9, marks=pytest.mark.bubblewrap),
        pytest.param("bubblewrap", signal.SIGTERM, None, marks=pytest.mark.bubblewrap),
    ],
)
def test_a_run(
    name: str,
    number: int,
    gap: float | None,
    items: Path,
    url: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    isolating: Wall = request.getfixturevalue(f"{name}_wall")
    out = tmp_path / "run"
    process = start(running(items, url, isolating.name, out))
    wait_for_records(out)
    code, errors = end(process, number, gap)
    assert code == 130
    assert "Traceback" not in errors
    last = errors.splitlines()[-1]
    assert last == f"pot: interrupted; go on with: pot run --resume {out}"
    assert boxes(isolating, process.pid) == []
    assert can_be_resumed(out)


@pytest.mark.bubblewrap
def test_a_run_that_is_being_set_up(
    bubblewrap_wall: Wall, items: Path, url: str, tmp_path: Path
) -> None:
    for delay in (0.8, 1.6):
        out = tmp_path / f"run{delay}"
        process = start(running(items, url, "bubblewrap", out))
        time.sleep(delay)
        code, errors = end(process, signal.SIGINT, 0.2)
        assert code == 130
        assert errors.splitlines()[-1].startswith("pot: interrupted")
        assert "Traceback" not in errors
        assert boxes(bubblewrap_wall, process.pid) == []
        assert not out.exists() or can_be_resumed(out)


def on_a_terminal(command: list[str], *, controlling: bool) -> tuple[subprocess.Popen[bytes], int]:
    """The process and the terminal's other end. Controlling: its end is a SIGHUP."""
    master, slave = pty.openpty()

    def prepare() -> None:
        os.setsid()
        if controlling:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, preexec_fn=prepare
    )
    os.close(slave)
    return process, master


@pytest.mark.bubblewrap
@pytest.mark.parametrize("controlling", [True, False], ids=["its terminal", "after setsid"])
def test_a_terminal_that_is_closed(
    bubblewrap_wall: Wall, controlling: bool, items: Path, url: str, tmp_path: Path
) -> None:
    """Its own terminal's end ends a run in good order; another's only ends what it shows."""
    out = tmp_path / "run"
    repeats = 20 if controlling else 1
    command = running(items, url, "bubblewrap", out, repeats)
    process, master = on_a_terminal(command, controlling=controlling)
    wait_for_records(out, lambda: process.poll() is None)
    os.close(master)
    code = process.wait(100)
    records = len(list(out.glob("samples/*.json")))
    if controlling:
        assert code == 130
        assert 0 < records < 8 * repeats
        assert can_be_resumed(out)
    else:
        assert records == 8 * repeats
        assert json.loads((out / "summary.json").read_text())["correct"] == 8 * repeats
    assert boxes(bubblewrap_wall, process.pid) == []


def test_impatience_is_heard_after_a_while() -> None:
    """Further signals change nothing at first; much later one ends the process at once."""
    process = start([sys.executable, "-c", STUBBORN])
    assert process.stdout
    assert process.stdout.readline() == "on\n"
    started = time.monotonic()
    for _ in range(8):
        process.send_signal(signal.SIGINT)
        time.sleep(0.25)
        assert process.poll() is None, "closing is not cut short"
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors == "pot: interrupted; what is left of its boxes is being removed\n"
    assert time.monotonic() - started < 30


def test_a_thread_that_is_busy_is_not_waited_for() -> None:
    process = start([sys.executable, "-c", LOADING])
    assert process.stdout
    assert process.stdout.readline() == "on\n"
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=50)
    assert (process.returncode, errors) == (130, INTERRUPTED)
    assert time.monotonic() - started < 30
