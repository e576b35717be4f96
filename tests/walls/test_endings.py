"""How boxes end and what their limits do: on each isolating wall, with real processes."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.bubblewrap import BubblewrapWall
from sandbox.cgroups import group_parents
from sandbox.docker import DockerConnection, DockerWall
from sandbox.errors import BoxLost
from sandbox.identity import this_process
from sandbox.inputs import staging_root
from sandbox.spec import BoxSpec, InputFile, Limits
from sandbox.wall import Connection, Wall

if TYPE_CHECKING:
    from tests.walls.conftest import Ask

SPEC = BoxSpec(
    inputs=(InputFile("a.png", b"1"),), limits=Limits(memory_mb=400, pids=64, work_mb=32, tmp_mb=16)
)
SCORE = "open('/proc/self/oom_score_adj', 'w').write('1000'); "
"""As the real supervisor does for its kernels: they are to die first."""

HOG = f"""
import subprocess, sys
def hog(code):
    code = "import time; " + {SCORE!r} + code
    return subprocess.run([sys.executable, '-c', code], capture_output=True).returncode
"""
"""`hog(code)` in the box: the exit code of a child that is to die first."""


@pytest.mark.parametrize(
    ("last_words", "cause"),
    [
        ("b'x' * (2 << 30)", "out_of_memory"),
        ("os.abort()", "signal:11"),
        ("os._exit(3)", "exit:3"),
        ("os._exit(0)", "exit:0"),
    ],
)
def test_why_a_box_ended(small_wall: Wall, ask: Ask, last_words: str, cause: str) -> None:
    async def end() -> tuple[str | None, str]:
        async with small_wall.open(SPEC) as box:
            # A first process cannot die of SIGABRT; libc's abort then faults on purpose.
            await ask(box, "import os, sys; sys.stderr.write('some last words\\n')")
            await box.write(json.dumps(last_words).encode() + b"\n")
            async with asyncio.timeout(60):
                while await box.read():
                    pass
            with pytest.raises(BoxLost):
                await flood(box)
            return await box.why_lost(), getattr(box, "diagnosis", "")

    found, words = asyncio.run(end())
    assert found == cause
    assert "some last words" in words


def test_killed_from_outside_is_not_the_box_own_doing(small_wall: Wall, ask: Ask) -> None:
    async def lose() -> str | None:
        async with small_wall.open(SPEC) as box:
            await ask(box, "answer = 1")
            if isinstance(box, DockerConnection):
                await asyncio.to_thread(kill_container, box.container_id)
            else:
                os.kill(first_process_of_a_box(), signal.SIGKILL)
            async with asyncio.timeout(60):
                while await box.read():
                    pass
            return await box.why_lost()

    def kill_container(identifier: str) -> None:
        assert isinstance(small_wall, DockerWall)
        small_wall.api.kill(identifier)

    assert asyncio.run(lose()) is None


def first_process_of_a_box() -> int:
    """The one grandchild of this process that is a box's first process."""
    found: list[int] = []
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        if b"bwrap" in Path(f"/proc/{child}/cmdline").read_bytes():
            found += map(int, Path(f"/proc/{child}/task/{child}/children").read_text().split())
    assert len(found) == 1
    return found[0]


async def flood(box: Connection) -> None:
    """Writes more than any buffer on the way holds."""
    for _ in range(100):
        await box.write(bytes(100_000))


def test_a_killed_box_is_gone(small_wall: Wall, ask: Ask) -> None:
    async def kill() -> str | None:
        async with small_wall.open(SPEC) as box:
            await ask(box, "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]")
            await box.kill()
            await box.kill()
            assert await box.read() == b""
            with pytest.raises(BoxLost):
                await flood(box)
            return await box.why_lost()

    assert asyncio.run(kill()) is None


def test_memory_of_children_and_scratch(small_wall: Wall, ask: Ask) -> None:
    """The limit kills the child that asks for too much, and counts files in memory as well."""

    async def hogs() -> list[object]:
        async with small_wall.open(SPEC) as box:
            await ask(box, HOG)
            fine = await ask(box, "answer = hog('b\"x\" * (100 << 20)')")
            large = await ask(
                box, "answer = hog('b\"x\" * (800 << 20); import time; time.sleep(9)')"
            )
            alive = await ask(box, "answer = 'alive'")
            return [fine, large, alive]

    assert asyncio.run(hogs()) == [0, -9, "alive"]


@pytest.mark.bubblewrap
def test_memory_without_control_groups(bubblewrap_wall: Wall, supervisor: Path, ask: Ask) -> None:
    """What an ordinary user's box has instead, told to the box in the same place."""
    assert isinstance(bubblewrap_wall, BubblewrapWall)
    wall = replace(
        bubblewrap_wall, supervisor=supervisor, control_groups=False, flavour="user_namespace"
    )
    counter = "open('/sys/fs/cgroup/memory/memory.oom_control').read().split()[-1]"
    tmpfs = "open('/work/x', 'wb').write(bytes(25 << 20)); "

    async def hogs() -> list[object]:
        spec = replace(SPEC, limits=replace(SPEC.limits, memory_mb=200))
        async with wall.open(spec) as box:
            assert box.enforced()["memory"].startswith("sampled")
            await ask(box, HOG)
            return [
                await ask(box, "answer = hog('b\"x\" * (50 << 20)')"),
                await ask(box, "answer = hog('x = b\"x\" * (400 << 20); time.sleep(20)')"),
                await ask(box, f"answer = {counter}"),
                # Files in memory count: neither half is too much by itself.
                await ask(
                    box, f"answer = hog({tmpfs + 'x = bytes([1]) * (185 << 20); time.sleep(20)'!r})"
                ),
                await ask(box, f"answer = {counter}"),
            ]

    assert asyncio.run(hogs()) == [0, -9, "1", -9, "2"]


def test_many_processes(small_wall: Wall, ask: Ask) -> None:
    bomb = """
import os, time
count = 0
try:
    while count < 500:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        count += 1
except OSError as error:
    answer = [error.errno, count <= 64]
"""

    async def explode() -> object:
        async with small_wall.open(SPEC) as box:
            return await ask(box, bomb)

    assert asyncio.run(explode()) == [errno.EAGAIN, True]


def test_cancelled_while_opening(small_wall: Wall) -> None:
    """However early a runner gives up, nothing of the box stays."""

    async def give_up(delay: float) -> None:
        async def opened() -> None:
            async with small_wall.open(SPEC):
                await asyncio.sleep(30)

        task = asyncio.create_task(opened())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for delay in (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
        asyncio.run(give_up(delay))
    assert [path for path in staging_root().iterdir() if str(os.getpid()) in path.name] == []
    if isinstance(small_wall, DockerWall):
        mine = {"label": f"potrunner.pid={os.getpid()}"}
        assert small_wall.api.containers(all=True, filters=mine) == []
    assert [f for p in group_parents() for f in p.glob(f"*{this_process()}*")] == []
