"""Times of a box on every wall that works here, beside a plain ipykernel over ipc, in one run.

Prints medians in milliseconds and the ratio of a warm cell to the plain kernel's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from sandbox import open_box
from sandbox.errors import SandboxUnavailable
from sandbox.session import Box
from sandbox.spec import DEFAULT_IMAGE, WallName
from sandbox.walls import choose

IMPORTS = "import numpy, cv2, skimage, scipy"
WALLS: tuple[WallName, ...] = ("docker", "bubblewrap", "process")


def plain_kernel(cells: int) -> float:
    """Milliseconds of `print(1)` in an ordinary ipykernel over ipc, median."""
    with tempfile.TemporaryDirectory() as folder:
        manager = KernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client: BlockingKernelClient = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=60)

        def ask() -> None:
            client.execute_interactive("print(1)", timeout=30, output_hook=nothing)

        times = [timed(ask) for _ in range(cells + 10)]
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return statistics.median(times[10:])


def nothing(_: object) -> None:
    return None


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


async def cell(box: Box, code: str) -> float:
    started = time.perf_counter()
    done = await box.run(code)
    assert done.status == "ok", done
    return (time.perf_counter() - started) * 1000


async def measure(wall: WallName, boxes: int, cells: int) -> dict[str, float]:
    first: list[float] = []
    warm: list[float] = []
    imports: list[float] = []
    memory: list[float] = []
    teardown: list[float] = []
    for _ in range(boxes):
        started = time.perf_counter()
        async with open_box(wall) as box:
            await cell(box, "print(1)")
            first.append((time.perf_counter() - started) * 1000)
        async with open_box(wall) as box:
            await box.preloaded()
            await asyncio.sleep(1)  # a model thinks for longer than that
            imports.append(await cell(box, IMPORTS))
            warm += [await cell(box, "print(1)") for _ in range(cells)]
            memory.append(await asyncio.to_thread(container_memory) if wall == "docker" else 0.0)
            ended = time.perf_counter()
        teardown.append((time.perf_counter() - ended) * 1000)
    return {
        "create_to_first_result_ms": statistics.median(first),
        "warm_cell_ms": statistics.median(warm),
        "first_scientific_import_ms": statistics.median(imports),
        "idle_memory_mb": statistics.median(memory),
        "teardown_ms": statistics.median(teardown),
    }


def container_memory() -> float:
    """Anonymous memory of the one container of ours, from its cgroup."""
    ids = subprocess.run(
        ["docker", "ps", "-q", "--no-trunc", "--filter", "label=potrunner"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    for name, key in (("memory/docker/{}", "total_rss"), ("system.slice/docker-{}.scope", "anon")):
        stat = Path("/sys/fs/cgroup") / name.format(ids[0]) / "memory.stat"
        if stat.exists():
            values = dict(line.split() for line in stat.read_text().splitlines())
            return int(values[key]) / 2**20
    return float("nan")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--boxes", type=int, default=9)
    arguments.add_argument("--cells", type=int, default=30, help="a box")
    arguments.add_argument("--json", action="store_true")
    chosen = arguments.parse_args()
    plain = plain_kernel(200)
    results: dict[str, dict[str, float]] = {"plain ipykernel": {"warm_cell_ms": plain}}
    for wall in WALLS:
        try:
            choose(wall, DEFAULT_IMAGE)
        except SandboxUnavailable as why:
            print(f"{wall}: {why}")
            continue
        results[wall] = asyncio.run(measure(wall, chosen.boxes, chosen.cells))
        results[wall]["warm_cell_ratio"] = results[wall]["warm_cell_ms"] / plain
    if chosen.json:
        print(json.dumps(results))
        return
    for name, values in results.items():
        print(f"{name:<16}", "  ".join(f"{key} {value:.2f}" for key, value in values.items()))


if __name__ == "__main__":
    main()
