"""One living box as the session sees it: made, greeted, frames in, frames out, gone.

A task of its own enters and leaves the wall's context, so that a box may be replaced from any task.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from sandbox.closing import to_the_end
from sandbox.errors import BoxLost, InputRefused, SandboxError, WireError
from sandbox.home import unreadable_hint
from sandbox.receipt import text
from sandbox.spec import BoxSpec, Limits
from sandbox.supervisor.wire import Decoder, Frame, FrameError, encode
from sandbox.wall import Connection, Wall

VERSION = 1
READY_SECONDS = 60.0
"""From the wall's start to the supervisor's answer; a loaded machine may be slow."""
PRELOAD_SECONDS = 60.0
QUEUED_FRAMES = 64

_preloads: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class Link:
    """Use `Link.open`. `connection` is there until `close`."""

    connection: Connection

    def __init__(self, wall: Wall, spec: BoxSpec) -> None:
        self._wall = wall
        self._spec = spec
        self._frames: asyncio.Queue[Frame | None] = asyncio.Queue(QUEUED_FRAMES)
        self._closing = asyncio.Event()
        self._greeted = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self.preloaded = asyncio.Event()
        """Set when the libraries are loaded, or will not be."""
        self._ended = False
        self._answered = False
        self._wanted: int | None = None
        """The cell whose frames somebody waits for."""
        self.began = 0
        """The last cell whose code may have run; from the first on nothing that the box says of
        itself excuses it."""
        self.forged = False
        """True when the box sent something that no supervisor sends."""
        self.ready: dict[str, Any] = {}
        """What the supervisor said of itself."""

    @classmethod
    async def open(cls, wall: Wall, spec: BoxSpec) -> Link:
        """
        Raises:
            SandboxUnavailable, InputRefused, BoxLost: as `Wall.open`; also when the supervisor does
                not answer or finds another input than was meant.
        """
        link = cls(wall, spec)
        opened: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        link._keeper = asyncio.create_task(link._keep(opened))
        try:
            await asyncio.wait({link._keeper, opened}, return_when=asyncio.FIRST_COMPLETED)
            if link._keeper.done():
                link._keeper.result()
                raise BoxLost("the wall gave up its box at once")
            link.connection = opened.result()
            await link._greet()
        finally:
            if not link._greeted.is_set():
                await link.close()
        return link

    @property
    def ended(self) -> bool:
        """Whether the stream has ended; frames from before it may still be waiting."""
        return self._ended

    async def send(self, header: dict[str, Any], parts: tuple[bytes, ...] = ()) -> None:
        """
        Raises:
            WireError: the frame is too large.
            BoxLost: nobody reads.
        """
        try:
            data = encode(header, parts)
        except FrameError as error:
            raise WireError(str(error)) from None
        if header["type"] == "run":
            self._wanted = header["id"]
        await self.connection.write(data)

    async def next(self, seconds: float) -> Frame | None:
        """The next frame; None when the stream has ended. Raises `TimeoutError`."""
        async with asyncio.timeout(max(0.0, seconds)):
            return await self._frames.get()

    async def close(self) -> None:
        """Ends the box and waits until it is gone. Idempotent."""
        self.abandon()
        if self._keeper is not None:
            # Its errors are those of a box that nobody wants any more.
            with suppress(SandboxError):
                await to_the_end(self._keeper)

    def abandon(self) -> None:
        """Lets the box end by itself, in the background."""
        self._closing.set()
        if self._keeper is not None and not hasattr(self, "connection"):
            self._keeper.cancel()

    async def _keep(self, opened: asyncio.Future[Connection]) -> None:
        try:
            async with self._wall.open(self._spec) as connection:
                opened.set_result(connection)
                await self._serve(connection)
        finally:
            self._hang_up()

    async def _serve(self, connection: Connection) -> None:
        """Until the link is closed."""
        tasks = [
            asyncio.create_task(self._read(connection)),
            asyncio.create_task(self._preload()),
        ]
        try:
            await self._closing.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _hang_up(self) -> None:
        """Nobody reads any more: whoever waits for a frame learns it."""
        if self._frames.full():
            self._frames.get_nowait()
        self._frames.put_nowait(None)
        self.preloaded.set()

    async def _read(self, connection: Connection) -> None:
        decoder = Decoder()
        try:
            while data := await connection.read():
                for frame in decoder.feed(data):
                    if self._concerns_somebody(frame):
                        await self._frames.put(frame)
        except FrameError:
            self.forged = True
        self._ended = True
        self.preloaded.set()
        await self._frames.put(None)

    def _concerns_somebody(self, frame: Frame) -> bool:
        """Whether to keep it. What nobody waits for is not kept: a box could fill the host."""
        if frame.type == "preloaded":
            self.preloaded.set()
            return False
        if not self._answered:
            self._answered = True  # the answer to the greeting
            return True
        number = frame.header.get("id")
        if type(number) is not int or number != self._wanted:
            return False
        self.began = number
        if frame.type == "done":
            self._wanted = None
        return frame.type in ("partial", "done")

    async def _greet(self) -> None:
        spec = self._spec
        hello = {
            "type": "hello",
            "version": VERSION,
            "seed": spec.seed,
            "data_dir": self.connection.data_dir,
            "work_dir": self.connection.work_dir,
            "inputs": [{"name": file.name, "sha256": file.sha256} for file in spec.inputs],
            "limits": _limits(spec.limits),
        }
        await self.send(hello)
        try:
            frame = await self.next(READY_SECONDS)
        except TimeoutError:
            raise BoxLost(f"the box did not answer within {READY_SECONDS:.0f} s") from None
        if frame is None:
            cause = await self.connection.why_lost()
            said = str(getattr(self.connection, "diagnosis", ""))[-500:]
            raise BoxLost(
                f"the box ended before it was ready ({cause or 'no cause'}): {said}"
                + unreadable_hint(said)
            )
        if frame.type == "refused":
            reason = text(frame.header.get("reason"))[:500]
            raise InputRefused(reason + unreadable_hint(reason))
        if frame.type != "ready":
            raise BoxLost(f"expected the box to say ready, it said {frame.type[:40]!r}")
        self.ready = dict(frame.header)
        self._greeted.set()

    async def _preload(self) -> None:
        """Has the box import the libraries: two seconds of CPU, so a few boxes at a time."""
        loop = asyncio.get_running_loop()
        slots = _preloads.setdefault(loop, asyncio.Semaphore(max(1, (os.cpu_count() or 2) // 2)))
        await self._greeted.wait()
        async with slots:
            with suppress(BoxLost, TimeoutError):
                await self.send({"type": "preload"})
                async with asyncio.timeout(PRELOAD_SECONDS):
                    await self.preloaded.wait()
        self.preloaded.set()


def _limits(limits: Limits) -> dict[str, Any]:
    return {
        "memory_mb": limits.memory_mb,
        "cpus": limits.cpus,
        "pids": limits.pids,
        "output_chars": limits.output_chars,
        "pictures": limits.pictures,
        "picture_pixels": limits.picture_pixels,
        "lifetime_seconds": limits.lifetime_seconds,
    }
