"""A box in which everything has been taken over, the supervisor too: whatever it says and does,
what is recorded is the model's doing, and the host stays well.

A few lines stand in for the supervisor, behind the real walls; the cell's code names the lie. What
came before the takeover is as it would be: the real one says `began` before any code runs.
"""

from __future__ import annotations

import asyncio
import io
import os
import time
import zlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from agent.config import RunConfig
from agent.observe import observe
from sandbox.bubblewrap import BubblewrapWall
from sandbox.docker import DockerWall
from sandbox.outputs import Execution, Stream
from sandbox.session import open_box
from sandbox.spec import InputFile, Limits
from sandbox.supervisor.spec import EXIT_NEVER_READY, EXIT_NO_KERNEL
from sandbox.wall import Wall
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, opened
from tests.sandbox.test_decoding import chunk, empty_blocks, many_scans, png, rows

LIAR = """
import json, os, struct, sys, time

def send(header, parts=()):
    full = {**header, "parts": [len(part) for part in parts]}
    text = json.dumps(full).encode()
    body = struct.pack(">I", len(text)) + text + b"".join(parts)
    put(struct.pack(">I", len(body)) + body)

def put(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]

def get(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            os._exit(0)
        data += more
    return data

def receive():
    (length,) = struct.unpack(">I", get(4))
    body = get(length)
    (size,) = struct.unpack(">I", body[:4])
    return json.loads(body[4:4 + size]), body[4 + size:]

def say(text):
    return [{"type": "stream", "name": "stdout", "text": text}]

def done(n, status="ok", cause=None, **more):
    send({"type": "done", "id": n, "status": status, "cause": cause, **more})

def closed(n):
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0); os.dup2(null, 1); os.dup2(null, 2)
    time.sleep(600)

def endless(n, header, parts=()):
    while True:
        send(header, parts)

def dribble(n):
    put(struct.pack(">II", 190_000_000, 100))
    while True:
        put(b"x"); time.sleep(0.01)

def between(n):
    done(n, outputs=say("then"))
    while True:
        send({"type": "partial", "id": n, "outputs": []}, [bytes(30_000_000)])
        send({"type": "done", "id": n + 1, "status": "ok", "outputs": say("in advance")})
        time.sleep(0.02)

def words(n):
    for _ in range(300):
        os.write(2, b"noise" * 20_000)
    done(n, outputs=say("said"))

def bombs(n):
    names = sorted(os.listdir("/mnt/data"))
    parts = [open("/mnt/data/" + name, "rb").read() for name in names]
    outputs = [{"type": "picture", "digest": name} for name in names]
    send({"type": "done", "id": n, "status": "ok", "cause": None,
          "outputs": outputs, "pictures": names}, parts)

LIES = {
    "ok": lambda n: done(n, outputs=say("forged"), cpu_seconds=-1, peak_mb="x"),
    "box_lost": lambda n: done(n, "died", "box_lost"),
    "sandbox_host": lambda n: done(n, "failed", "sandbox_host"),
    "excused": lambda n: done(n, "ok", "the host's fault"),
    "early": lambda n: done(n, "timeout", "deadline"),
    "exit never ready": lambda n: os._exit(NEVER_READY),
    "exit no kernel": lambda n: os._exit(NO_KERNEL),
    "exit": lambda n: os._exit(0),
    "abort": lambda n: os.abort(),
    "closed": closed,
    "silent": lambda n: time.sleep(600),
    "dribble": dribble,
    "too long": lambda n: put(b"\\xff" * 64),
    "no frame": lambda n: put(struct.pack(">II", 20, 8) + b"[1, 2, 3" + b"x" * 8),
    "endless": lambda n: endless(n, {"type": "partial", "id": n, "outputs": say("x" * 1000)}),
    "endless headers": lambda n: endless(
        n, {"type": "partial", "id": n, "outputs": [[1] * 9] * 100_000}),
    "endless parts": lambda n: endless(
        n, {"type": "partial", "id": n, "pictures": ["d"], "outputs": []}, [bytes(90_000_000)]),
    "endless to others": lambda n: endless(n, {"type": "partial", "id": 999}, [bytes(9_000_000)]),
    "endless small": lambda n: endless(n, {"type": "x"}),
    "between": between,
    "words": words,
    "bombs": bombs,
}
while True:
    header, body = receive()
    if header["type"] == "hello":
        send({"type": "ready", "version": 1, "python": "3", "packages": {}, "facts": {}})
    elif header["type"] == "preload":
        send({"type": "preloaded"})
    elif header["type"] == "run":
        send({"type": "began", "id": header["id"]})
        LIES[body.decode()](header["id"])
"""
CODES = f"NEVER_READY, NO_KERNEL = {EXIT_NEVER_READY}, {EXIT_NO_KERNEL}\n"

LIMITS = Limits(
    memory_mb=512, pids=64, work_mb=32, tmp_mb=16, cell_seconds=0.8, grace_seconds=0.2, pictures=8
)
BOUND_MB = 900
"""What the host may grow by: a frame may hold 192 MiB, and is copied."""


def bombs() -> dict[str, bytes]:
    """Pictures that cost a plain decoder seconds, minutes or gigabytes; and one that is good."""
    good = io.BytesIO()
    Image.new("RGB", (30, 20), "red").save(good, "PNG")
    profile = chunk(b"iCCP", b"p\0\0" + zlib.compress(bytes(1 << 20), 9))
    return {
        "a.png": png(rows(), width=16_384, height=16_384),
        "b.png": png(chunk(b"IDAT", empty_blocks(6_000_000)), width=4000, height=4000),
        "c.png": png(profile * 2000, rows()),
        "d.jpg": many_scans(120),
        "e.png": good.getvalue(),
    }


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def wall(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Wall:
    folder = tmp_path_factory.mktemp("liar")
    (folder / "__main__.py").write_text(CODES + LIAR)
    found = available_wall(request.param)
    assert isinstance(found, DockerWall | BubblewrapWall)
    return replace(found, supervisor=folder)


@pytest.fixture(scope="module")
def cells(wall: Wall) -> Generator[Cells]:
    inputs = tuple(InputFile(name, data) for name, data in bombs().items())
    with opened(wall, limits=LIMITS, inputs=inputs) as box:
        yield box


LATE = ("timeout", "deadline")
RECORDED: dict[str, tuple[str, str | None]] = {
    "ok": ("ok", None),
    "words": ("ok", None),
    "box_lost": ("died", "box_lost"),
    "sandbox_host": ("died", "box_lost"),
    "excused": ("died", "box_lost"),
    "early": ("died", "box_lost"),
    "too long": ("died", "box_lost"),
    "no frame": ("died", "box_lost"),
    "exit never ready": ("died", f"exit:{EXIT_NEVER_READY}"),
    "exit no kernel": ("died", f"exit:{EXIT_NO_KERNEL}"),
    "exit": ("died", "exit:0"),
    "abort": ("died", "signal:11"),
    **dict.fromkeys(
        (
            "silent",
            "closed",  # engine and bwrap keep the stream open: nothing comes until the deadline
            "dribble",
            "endless",
            "endless headers",
            "endless parts",
            "endless to others",
            "endless small",
        ),
        LATE,
    ),
}


class Memory:
    """How much this process grows while something runs, in MiB."""

    def __init__(self) -> None:
        self._start = resident_mb()
        self.grown = 0.0

    async def watch(self) -> None:
        while True:
            self.grown = max(self.grown, resident_mb() - self._start)
            await asyncio.sleep(0.02)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def run_watched(cells: Cells, lie: str) -> tuple[Execution, float]:
    """The record, and the memory that the host took for it."""
    memory = Memory()

    async def go() -> Execution:
        watching = asyncio.create_task(memory.watch())
        try:
            return await cells.box.run(lie)
        finally:
            watching.cancel()

    return cells.do(go()), memory.grown


@pytest.mark.parametrize("lie", RECORDED)
def test_no_lie_excuses_a_cell(cells: Cells, lie: str) -> None:
    expected = RECORDED[lie]
    started = time.monotonic()
    execution, grown = run_watched(cells, lie)
    assert (execution.status, execution.cause) == expected
    assert execution.kernel == ("kept" if expected[0] == "ok" else "restarted")
    assert execution.seconds <= time.monotonic() - started
    assert execution.seconds >= (LIMITS.cell_seconds if expected == LATE else 0)
    assert (execution.cpu_seconds, execution.peak_mb) == (0.0, 0.0)
    assert time.monotonic() - started < 60
    assert grown < BOUND_MB
    again = cells.run("ok")  # the next cell is served, in a new box where there had to be one
    assert (again.status, again.text) == ("ok", "forged")


def test_a_box_taken_over_by_an_earlier_cell_is_not_excused_later(cells: Cells) -> None:
    """It need not say `began` again: what counts is that code has run in it."""
    assert cells.run("ok").status == "ok"
    execution = cells.run("exit never ready")
    assert (execution.status, execution.cause) == ("died", f"exit:{EXIT_NEVER_READY}")


def test_what_is_said_between_cells_is_neither_kept_nor_believed(cells: Cells) -> None:
    memory = Memory()

    async def go() -> tuple[Execution, Execution]:
        watching = asyncio.create_task(memory.watch())
        first = await cells.box.run("between")
        await asyncio.sleep(2)  # a model is thinking
        second = await cells.box.run("ok")
        watching.cancel()
        return first, second

    first, second = cells.do(go())
    assert first.text == "then"
    assert memory.grown < BOUND_MB
    # The box claims to have run the next cell: that it may, its answer is the model's doing; but
    # not before it was handed over.
    assert second.status in ("ok", "timeout", "died")
    assert not [o for o in first.outputs if isinstance(o, Stream) and "advance" in o.text]
    cells.run("exit")


def test_pictures_that_are_bombs(cells: Cells) -> None:
    before = time.process_time()
    execution, grown = run_watched(cells, "bombs")
    assert execution.status == "ok"
    assert [(p.width, p.height) for p in execution.pictures] == [(8, 8), (30, 20)]
    note = str(execution.note)
    assert "16384x16384 pixels" in note
    assert "more than 100 scans" in note
    parts = observe(execution, RunConfig("cwi", model="m"), 1)
    assert len(parts) >= 4
    assert time.process_time() - before < 30
    assert grown < BOUND_MB
    assert cells.run("ok").status == "ok"


def test_a_flooding_box_does_not_keep_others_from_ending(wall: Wall) -> None:
    """Every box has its share of the loop: a cell elsewhere ends while one floods."""

    async def go() -> tuple[Execution, float]:
        async with open_box(wall, limits=LIMITS) as bad, open_box(wall, limits=LIMITS) as good:
            flood = asyncio.create_task(bad.run("endless headers", 4.0))
            await asyncio.sleep(1)
            started = time.monotonic()
            execution = await good.run("ok", 30.0)
            took = time.monotonic() - started
            assert not flood.done()
            await flood
            return execution, took

    execution, took = asyncio.run(go())
    assert (execution.status, execution.text) == ("ok", "forged")
    assert took < 5
