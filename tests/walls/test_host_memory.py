"""The machine runs out of memory, not the box: a fault of the host, not of the model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import hostmemory
from sandbox.cgroups import Group, group_parents
from sandbox.docker import cause_of_death
from sandbox.supervisor.aftermath import death, taken_by_host
from sandbox.supervisor.counters import Counters
from sandbox.supervisor.spec import EXIT_HOST_MEMORY

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
SCRIPT = """
import asyncio, sys
from sandbox import BoxLost, Limits, open_box

async def main():
    async with open_box(sys.argv[1], limits=Limits(memory_mb=2000)) as box:
        print((await box.run("print('small')")).text, flush=True)
        try:
            print((await box.run("x = b'x' * (900 << 20); print('large')")).cause, flush=True)
        except BoxLost as lost:
            print("lost:", lost, flush=True)
    async with open_box(sys.argv[1], limits=Limits(memory_mb=200)) as box:
        print((await box.run("x = b'x' * (900 << 20)")).cause, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def small_machine() -> Iterator[Path]:
    """A control group that stands for a machine with 600 MiB: boxes' groups lie below it."""
    parents = [path for path in group_parents() if "memory" in str(path)]
    if not parents or os.geteuid():
        pytest.skip("needs root and control groups of version 1")
    folder = parents[0] / f"pot-small-machine-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / "memory.limit_in_bytes").write_text(str(600 * MIB))
        yield folder
    finally:
        folder.rmdir()


@pytest.mark.bubblewrap
def test_a_kernel_taken_by_the_host_is_no_result(
    bubblewrap_wall: object, small_machine: Path
) -> None:
    assert bubblewrap_wall
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "bubblewrap"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
        check=False,
        preexec_fn=lambda: (small_machine / "cgroup.procs").write_text(str(os.getpid())),
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "small"
    assert lines[1].startswith("lost: ")
    assert lines[2] == "out_of_memory"


@pytest.mark.parametrize(
    ("status", "kills", "reached", "host"),
    [(9, 1, False, True), (9, 1, True, False), (9, 0, False, False), (11, 1, False, False)],
)
def test_who_took_a_kernel(status: int, kills: int, reached: bool, host: bool) -> None:
    now = Counters(kills, 0, limit_reached=reached)
    assert taken_by_host(status, Counters(0, 0), now) is host
    assert death(9, Counters(0, 0), Counters(1, 0, limit_reached=True)) == "out_of_memory"


def test_a_box_cannot_excuse_itself() -> None:
    claim = f"exit:{EXIT_HOST_MEMORY}"
    now = hostmemory.oom_kills()
    assert now is not None
    assert hostmemory.settle(claim, now + 1, own_limit=False) == "out_of_memory", "none since"
    assert hostmemory.settle(claim, now - 1, own_limit=True) == "out_of_memory", "its own limit"
    assert hostmemory.settle(claim, now - 1, own_limit=False) is None
    assert hostmemory.settle("exit:3", now - 1, own_limit=False) == "exit:3"
    assert hostmemory.settle(None, None, own_limit=False) is None


def test_the_engine_tells_an_exit_code() -> None:
    events = [{"Action": "die", "Actor": {"Attributes": {"exitCode": str(EXIT_HOST_MEMORY)}}}]
    assert cause_of_death(events) == f"exit:{EXIT_HOST_MEMORY}"


@pytest.mark.parametrize(
    ("version", "peak", "limit"),
    [(1, "memory.max_usage_in_bytes", "memory.limit_in_bytes"), (2, "memory.peak", "memory.max")],
)
def test_a_group_knows_its_peak(version: int, peak: str, limit: str, tmp_path: Path) -> None:
    group = Group(version, {"memory": tmp_path})
    assert group.limit_reached(), "taken for the box's own where it cannot be seen"
    (tmp_path / limit).write_text(f"{500 * MIB}\n")
    for used, reached in ((100, False), (480, False), (485, True), (500, True)):
        (tmp_path / peak).write_text(f"{used * MIB}\n")
        assert group.limit_reached() is reached
