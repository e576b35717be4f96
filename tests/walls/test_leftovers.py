"""What a runner leaves on the host when it dies at a bad moment: processes, temporary folders."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.identity import Owner, host_id, this_process
from sandbox.reap_child import OWNER_MARK, marked_processes
from sandbox.reaper import sweep

DEAD = Owner(host_id(), 2**22 - 3, "0")
RUNNER = """
import asyncio, subprocess, sys
from sandbox.identity import this_process
from sandbox.reap_child import OWNER_MARK
from sandbox.reaper import guard
from sandbox.spec import BoxSpec
from sandbox.walls import choose

async def main():
    wall = choose(sys.argv[1])
    async def hold():
        while True:
            async with wall.open(BoxSpec()):
                await asyncio.sleep(0.01)
    print("go", flush=True)
    await asyncio.gather(*(hold() for _ in range(3)))

with guard("leftovers"):
    # What bwrap's child is when bwrap dies first: nobody but the reaper ends it.
    subprocess.Popen(["sleep", "600"], env={OWNER_MARK: str(this_process())})
    asyncio.run(main())
"""


def marked_sleeper(owner: Owner) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], env={OWNER_MARK: str(owner)})


def test_a_sweep_ends_processes_of_dead_runners_and_of_no_other() -> None:
    dead, living = marked_sleeper(DEAD), marked_sleeper(this_process())
    try:
        time.sleep(0.1)  # until both have their environment
        sweep()
        assert dead.wait(5) == -signal.SIGKILL
        assert living.poll() is None
    finally:
        for process in (dead, living):
            process.kill()
            process.wait()


def test_a_sweep_removes_temporary_folders_of_dead_runners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made: dict[str, Path] = {}
    for name, text in (("dead", str(DEAD)), ("living", str(this_process())), ("torn", "")):
        made[name] = tmp_path / f"potrunner-{name}"
        made[name].mkdir()
        (made[name] / ".owner").write_text(text)
    (tmp_path / "potrunner-foreign").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "from sandbox.reaper import sweep; sweep()"], check=False
    )
    assert done.returncode == 0
    assert not made["dead"].exists()
    assert made["living"].exists()
    assert made["torn"].exists()
    assert (tmp_path / "potrunner-foreign").exists()


@pytest.mark.bubblewrap
def test_a_runner_killed_at_any_moment_of_a_boxs_start_leaves_no_process(
    bubblewrap_wall: object,
) -> None:
    assert bubblewrap_wall
    chance = random.Random(5)
    owners: list[str] = []
    for _ in range(12):
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER, "bubblewrap"],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"go\n"
        owners.append(f".{runner.pid}.")
        time.sleep(chance.uniform(0.0, 0.25))
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
        runner.stdout.close()
    deadline = time.monotonic() + 15
    left = [1]
    while left and time.monotonic() < deadline:
        left = [pid for pid, owner in marked_processes() if any(o in owner for o in owners)]
        time.sleep(0.2)
    assert left == []
