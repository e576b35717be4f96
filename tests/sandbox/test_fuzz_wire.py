"""Both ends of the wire under hostile bytes, with fixed seeds: never another exception than the one
that is documented, never a hang, never a record that says more than the host's clock and wait know.

For longer, with new seeds, and figures at the end:

    nice -n 10 python -m tests.sandbox.test_fuzz_wire 600
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from sandbox.errors import BoxLost, InputRefused, WireError
from sandbox.launch import ENVIRONMENT, PYTHON_FLAGS, SUPERVISOR_DIR
from sandbox.muxed import MAX_PIECE_BYTES, Demultiplexer
from sandbox.outputs import Execution
from sandbox.session import open_box
from sandbox.spec import BoxSpec, WallName
from sandbox.supervisor.wire import Decoder, Frame, FrameError, encode
from tests.sandbox.wire_fuzz import LIMITS, Fuzz, problem

READY = encode({"type": "ready", "version": 1, "python": "3.11", "packages": {}, "facts": {}})
ENDS: list[str | None] = [None, "out_of_memory", "signal:11", "exit:7", "exit:5", "exit:0"]
"""What a wall may find of a box that has ended."""


# --- frames and pieces ----------------------------------------------------------------------------


def read(pieces: list[bytes]) -> tuple[list[Frame], bool]:
    """The frames, and whether the stream was refused in the end."""
    decoder, found = Decoder(), list[Frame]()
    try:
        for piece in pieces:
            found += decoder.feed(piece)
    except FrameError as error:
        assert str(error).count("\n") == 0  # noqa: PT017  (what it says is part of the test)
        return found, True
    return found, False


def fuzz_decoder(seed: int) -> int:
    """The same frames and the same refusal, however the bytes were cut."""
    fuzz = Fuzz(seed)
    stream = b"".join(fuzz.piece() for _ in range(fuzz.random.randrange(1, 8)))
    whole, pieces = read([stream]), read(fuzz.cuts(stream))
    assert str(whole) == str(pieces)
    assert all(isinstance(frame.type, str) for frame in whole[0])
    return fuzz.frames


def muxed(fuzz: Fuzz, stream: bytes) -> tuple[bytes, bytes]:
    """The stream as the engine sends it, with words on stderr between; these words."""
    sent, words = bytearray(), bytearray()
    for piece in fuzz.cuts(stream):
        while fuzz.random.random() < 0.3:
            word = fuzz.piece()[:300]
            words += word
            sent += b"\2\0\0\0" + len(word).to_bytes(4, "big") + word
        sent += b"\1\0\0\0" + len(piece).to_bytes(4, "big") + piece
    return bytes(sent), bytes(words)


def fuzz_multiplexed(seed: int) -> int:
    """What is said on stderr never gets into the frames; a stream that is none is refused."""
    fuzz = Fuzz(seed)
    stream = b"".join(fuzz.piece() for _ in range(fuzz.random.randrange(1, 8)))
    sent, words = muxed(fuzz, stream)
    demultiplexer = Demultiplexer()
    out = {"stdout": bytearray(), "stderr": bytearray()}
    for cut in fuzz.cuts(sent):
        for name, data in demultiplexer.feed(cut):
            out[name] += data
    assert (out["stdout"], out["stderr"]) == (stream, words)
    assert demultiplexer.at_boundary
    try:
        for cut in fuzz.cuts(fuzz.mutated(sent)):
            for _, data in Demultiplexer().feed(cut):
                assert len(data) <= MAX_PIECE_BYTES
    except WireError:
        return fuzz.frames
    return fuzz.frames


# --- the host's end -------------------------------------------------------------------------------


@dataclass
class HostileConnection:
    """A box that answers what the host says with anything, when and how often it likes."""

    fuzz: Fuzz
    data_dir: str = "/mnt/data"
    work_dir: str = "/work"
    ended: bool = False
    cells: int = 0
    pieces: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue[bytes])

    async def read(self) -> bytes:
        return await self.pieces.get()

    async def write(self, data: bytes) -> None:
        if self.ended:
            raise BoxLost("the box's stream has ended")
        pick = self.fuzz.random
        if b'"type":"hello"' in data:
            greets = pick.random() < 0.9
            self._say([READY] if greets else [self.fuzz.piece()])
            self.ended = not greets  # a greeting that never comes has a deadline of its own
        self.cells += b'"type":"run"' in data
        if self.cells:
            self._say([self.fuzz.piece(self.cells, 0.95) for _ in range(pick.randrange(5))])
        if self.ended or (self.cells and pick.random() < 0.08):
            self.ended = True
            self.pieces.put_nowait(b"")

    def _say(self, pieces: list[bytes]) -> None:
        for piece in self.fuzz.cuts(b"".join(pieces)):
            self.pieces.put_nowait(piece)

    async def kill(self) -> None:
        self.ended = True
        self.pieces.put_nowait(b"")

    async def why_lost(self) -> str | None:
        cause = self.fuzz.random.choice(ENDS)
        self.fuzz.causes.append(cause)
        return cause

    def enforced(self) -> dict[str, str]:
        return {}


@dataclass
class HostileWall:
    fuzz: Fuzz
    name: WallName = "process"
    boxes: list[HostileConnection] = field(default_factory=list[HostileConnection])

    @asynccontextmanager
    async def open(self, spec: BoxSpec) -> AsyncGenerator[HostileConnection]:
        self.boxes.append(HostileConnection(self.fuzz))
        yield self.boxes[-1]


def fuzz_host(seed: int) -> int:
    """Three cells in one box after the other; each has an honest record or the box is lost."""
    fuzz = Fuzz(seed)
    wall, found = HostileWall(fuzz), list[Execution]()

    async def go() -> None:
        async with asyncio.timeout(30), open_box(wall, limits=LIMITS) as box:
            for _ in range(3):
                found.append(await box.run("1"))

    try:
        asyncio.run(go())
    except (BoxLost, InputRefused):
        # In a box that has been given code only where the wall saw no fault of the box, or a box
        # that ended before it began: never by what it says of itself.
        last = wall.boxes[-1]
        excused = not last.cells or fuzz.causes[-1] in (None, "exit:7")
        assert excused, f"seed {seed}: {fuzz.causes}"
    for execution in found:
        assert problem(execution, LIMITS.cell_seconds) is None, f"seed {seed}"
    return fuzz.frames


# --- the supervisor's end -------------------------------------------------------------------------


def hello(folder: str) -> bytes:
    names: dict[str, Any] = {
        "cpus": 1.0,
        "memory_mb": 256,
        "pids": 32,
        "output_chars": 400,
        "pictures": 2,
    }
    limits = {**names, "picture_pixels": 10_000, "lifetime_seconds": 60.0}
    folders = {"data_dir": folder, "work_dir": folder}
    said: dict[str, Any] = {"type": "hello", "version": 1, "seed": 0, "inputs": []}
    return encode({**said, **folders, "limits": limits})


def fuzz_supervisor(seed: int) -> int:
    """The real one, as an ordinary process: it ends by itself with a code of its own, and says
    nothing but frames; a traceback of its own would be on stderr."""
    fuzz = Fuzz(seed)
    with tempfile.TemporaryDirectory() as folder:
        greeting = hello(folder)
        if fuzz.random.random() < 0.4:
            greeting = fuzz.mutated(greeting) if fuzz.random.random() < 0.5 else odd_hello(fuzz)
        said = b"".join([greeting, *(fuzz.piece() for _ in range(6))])
        done = subprocess.run(
            [sys.executable, *PYTHON_FLAGS, str(SUPERVISOR_DIR)],
            input=said,
            capture_output=True,
            timeout=60,
            check=False,
            cwd=folder,
            env={**ENVIRONMENT, "PATH": os.environ["PATH"], "TMPDIR": folder},
            start_new_session=True,
        )
    assert done.returncode in (0, 3, 4, 5, 6, 7), (seed, done)
    assert b"Traceback" not in done.stderr, (seed, done.stderr)
    frames, refused = read([done.stdout])
    assert not refused
    assert {frame.type for frame in frames} <= {
        "ready", "refused", "began", "partial", "done", "preloaded",
    }  # fmt: skip
    return fuzz.frames


def odd_hello(fuzz: Fuzz) -> bytes:
    """With fields of any shape."""
    names = ("seed", "data_dir", "work_dir", "inputs", "limits", "version")
    said = {name: fuzz.odd() for name in names if fuzz.random.random() < 0.5}
    limits = {name: fuzz.odd() for name in ("cpus", "memory_mb", "pids", "lifetime_seconds")}
    text: dict[str, Any] = {"type": "hello", "version": 1, "seed": 0, "inputs": []}
    return encode({**text, "limits": limits, **said})


TARGETS: dict[str, tuple[Callable[[int], int], int]] = {
    "decoder": (fuzz_decoder, 1500),
    "multiplexed": (fuzz_multiplexed, 500),
    "host": (fuzz_host, 60),
    "supervisor": (fuzz_supervisor, 10),
}
"""Each with its number of seeds in the suite."""


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_bytes(name: str) -> None:
    target, seeds = TARGETS[name]
    assert sum(target(seed) for seed in range(seeds)) > seeds


def main(seconds: float) -> None:
    """Turns between the targets; a fault is printed with its seed and ends the run."""
    until = time.monotonic() + seconds
    tried, frames = Counter[str](), Counter[str]()
    seed = int(time.time()) * 1000
    print(f"first seed {seed}")
    while time.monotonic() < until:
        for name, (target, share) in TARGETS.items():
            for _ in range(max(1, share // 10)):
                seed += 1
                frames[name] += target(seed)
                tried[name] += 1
    for name, count in tried.items():
        print(f"{name}: {count} streams, {frames[name]} frames")


if __name__ == "__main__":
    main(float(sys.argv[1]))
