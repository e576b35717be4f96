"""One writer at a time: who holds a run is told, the dead let go; also on disks without locks."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.errors import RunDirBusy
from agent.lock import Holder, held
from sandbox.identity import Owner

ROOT = Path(__file__).resolve().parents[2]
LOCKLESS = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="a disk without locks is made with Linux seccomp",
)
KINDS = [pytest.param("", id="flock"), pytest.param("no locks", marks=LOCKLESS, id="no-locks")]
HEAD = """
import pathlib, sys, time
from agent.errors import RunDirBusy
from agent.lock import held
folder = pathlib.Path(sys.argv[1])
if sys.argv[2]:
    from tests.runs.nolocks import forbid_locks
    forbid_locks()
"""
HOLD = HEAD + "with held(folder):\n    print('held', flush=True)\n    sys.stdin.read()\n"
TRY = HEAD + "try:\n    with held(folder): print('mine')\nexcept RunDirBusy as busy: print(busy)\n"
CROWD = (
    HEAD
    + """
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    try:
        with held(folder):
            (folder / "inside").mkdir()
            time.sleep(0.002)
            (folder / "inside").rmdir()
            print("mine", flush=True)
    except RunDirBusy:
        time.sleep(0.001)
"""
)


def started(program: str, folder: Path, kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, str(folder), kind]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@contextmanager
def holder(folder: Path, kind: str) -> Generator[subprocess.Popen[str]]:
    with started(HOLD, folder, kind) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "held\n", process.stderr and process.stderr.read()
            yield process
        finally:
            process.kill()


def tried(folder: Path, kind: str) -> str:
    command = [sys.executable, "-c", TRY, str(folder), kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("kind", KINDS)
def test_who_holds_it_is_told_and_the_dead_let_go(tmp_path: Path, kind: str) -> None:
    with holder(tmp_path, kind) as first:
        said = tried(tmp_path, kind)
        assert f"in use by process {first.pid} on {platform.node()} since 20" in said
        assert said.endswith("wait for it or stop it")
        first.kill()
        first.wait(30)
        assert tried(tmp_path, kind) == "mine"
    with holder(tmp_path, kind) as second:
        second.communicate("", timeout=30)  # an orderly end
    assert tried(tmp_path, kind) == "mine"
    assert {path.name for path in tmp_path.iterdir()} <= {".lock"}


@pytest.mark.parametrize("kind", KINDS)
def test_of_many_at_once_only_one_is_inside(tmp_path: Path, kind: str) -> None:
    dead = Holder(Owner(this_host(), 2**22 - 3, "0"), "here", "yesterday")
    (tmp_path / ".held").write_bytes(dead.data())
    crowd = [started(CROWD, tmp_path, kind) for _ in range(5)]
    try:
        for process in crowd:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        ended = [process.communicate("go\n", timeout=60) for process in crowd]
    finally:
        for process in crowd:
            process.kill()
    assert [process.returncode for process in crowd] == [0] * 5, ended
    assert sum(out.count("mine") for out, _ in ended) >= 5


def this_host() -> str:
    return Holder.this().owner.host


@LOCKLESS
def test_without_locks_another_hosts_holder_and_nonsense_are_not_taken_over(tmp_path: Path) -> None:
    there = Holder(Owner("abcdef012345", 77, "1"), "node17", "2026-01-02 03:04:05+00:00")
    (tmp_path / ".held").write_bytes(there.data())
    said = tried(tmp_path, "no locks")
    assert "process 77 on node17 since 2026-01-02 03:04:05+00:00" in said
    assert said.endswith(f"if it is dead, delete {tmp_path}/.held")
    for nonsense in (b"", b"\0\xff", b"[1, 2]", b'["a.b", "c", "d"]', b"7"):
        (tmp_path / ".held").write_bytes(nonsense)
        said = tried(tmp_path, "no locks")
        assert "in use by another process" in said
        assert "delete" in said
        assert (tmp_path / ".held").read_bytes() == nonsense


def test_a_lock_file_that_is_nonsense_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_bytes(b"\0\xff not ours" * 100)
    with (
        held(tmp_path),
        pytest.raises(RunDirBusy, match=f"process {os.getpid()} on"),
        held(tmp_path),
    ):
        pass
