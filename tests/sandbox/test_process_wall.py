"""The process wall on a machine without control groups, and what it leaves behind: nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from sandbox.errors import BoxLost
from sandbox.process import ProcessWall
from sandbox.session import open_box
from sandbox.spec import Limits
from tests.sandbox.boxes import Cells, error, opened, stdout

LIMITS = Limits(memory_mb=400, pids=40, work_mb=8, tmp_mb=8, cell_seconds=20, grace_seconds=1)


@pytest.fixture(scope="module")
def cells() -> Generator[Cells]:
    with opened(ProcessWall(control_group=False), LIMITS) as box:
        yield box


def test_it_says_that_it_samples(cells: Cells) -> None:
    assert cells.enforces("memory").startswith("sampled")
    assert cells.enforces("pids").startswith("sampled")


def test_memory_is_watched(cells: Cells) -> None:
    execution = cells.run(
        """
        import time
        print("filling", flush=True)
        blocks = []
        for _ in range(100):
            blocks.append(bytearray(b"x") * (16 * 1024 * 1024))
            time.sleep(0.02)
        """
    )
    assert (execution.status, execution.cause) == ("died", "out_of_memory")
    assert stdout(execution) == "filling\n"
    assert cells.text("print('alive')") == "alive"


def test_processes_are_watched(cells: Cells) -> None:
    execution = cells.run(
        """
        import os, time
        for _ in range(120):
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        time.sleep(30)
        """
    )
    assert (execution.status, execution.cause) == ("died", "too_many_processes")
    assert cells.text("print('alive')") == "alive"


def test_a_large_file_is_an_error_and_many_files_end_the_box(cells: Cells) -> None:
    large = cells.run("open('large', 'wb').write(bytes(9 << 20))")
    assert error(large).name == "OSError"
    many = cells.run(
        """
        import time
        for n in range(5): _ = open(f"part{n}", "wb").write(bytes(7 << 20))
        time.sleep(30)
        """
    )
    assert (many.status, many.cause, many.kernel) == ("died", "box_lost", "restarted")
    assert cells.text("import os; print(os.listdir('.'))") == "[]"


def test_a_killed_supervisor_is_the_cells_doing(cells: Cells) -> None:
    execution = cells.run("import os\nprint('a', flush=True)\nos.kill(os.getppid(), 9)\nwhile 1: 0")
    assert (execution.status, execution.cause) == ("died", "signal:9")
    assert cells.text("print('alive')") == "alive"


def test_a_box_ended_by_its_host_is_infrastructure() -> None:
    async def go() -> None:
        async with open_box(ProcessWall(), limits=LIMITS) as box:
            cell = asyncio.create_task(box.run("import time; time.sleep(30)"))
            await asyncio.sleep(0.5)
            await box.close()
            with pytest.raises(BoxLost):
                await cell

    asyncio.run(go())


def test_a_cancelled_cell_ends_with_its_box() -> None:
    async def go() -> str:
        async with open_box(ProcessWall(), limits=LIMITS) as box:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await box.run("import time; time.sleep(30)")
            return (await box.run("print('next')")).text

    assert asyncio.run(go()) == "next"


def processes(marker: str) -> list[int]:
    """Living processes whose environment holds the marker."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and marker.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


RUNNER = """
import asyncio
from sandbox.process import ProcessWall
from sandbox.session import open_box

async def main():
    async with open_box(ProcessWall()) as box:
        await box.run("import subprocess; subprocess.Popen(['sleep', '99'], start_new_session=True)"
                      "\\nprint(1)")
        print(box.work_dir, flush=True)
        await box.run("import subprocess; subprocess.run(['sleep', '99'])", 99)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_survives_its_runner(number: signal.Signals, tmp_path: Path) -> None:
    long = tmp_path / ("ü" * 100)
    long.mkdir()
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[2],
        # Too long for the sockets below it: the box gets a shorter place (R19).
        env={**os.environ, "TMPDIR": str(long)},
    )
    assert runner.stdout is not None
    folder = str(Path(runner.stdout.readline().strip()).parent)
    assert not folder.startswith(str(tmp_path))
    time.sleep(0.5)
    assert len(processes(folder)) >= 2
    runner.send_signal(number)
    runner.wait(20)
    runner.stdout.close()
    until = time.monotonic() + 15
    while processes(folder) and time.monotonic() < until:
        time.sleep(0.1)
    assert processes(folder) == []
    shutil.rmtree(folder, ignore_errors=True)  # after a SIGKILL the next start would
