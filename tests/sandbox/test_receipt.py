"""A hostile box cannot make the host raise, hang, or keep more than the caps allow."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sandbox.decoding import MAX_SCANS, decode
from sandbox.errors import BoxLost, InputRefused, SandboxError
from sandbox.outputs import Display, Execution, Stream
from sandbox.receipt import MAX_ERRORS, Receipt, ending, files_of, notes_of
from sandbox.session import open_box
from sandbox.spec import BoxSpec, Limits, WallName
from sandbox.supervisor.sniff import sniff
from sandbox.supervisor.spec import EXIT_NEVER_READY
from sandbox.supervisor.wire import encode

LIMITS = Limits(picture_pixels=10_000, output_chars=1000, pictures=2, grace_seconds=0.1)


def png(width: int = 8, height: int = 4, mode: str = "RGB", colour: int = 0) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (width, height), colour).save(buffer, "PNG")
    return buffer.getvalue()


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "text", "digest", "path", "bytes", "chars", "pictures", "outputs"]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(
        st.sampled_from(["outputs", "pictures", "dropped", "files", "notes"]), junk, max_size=5
    ),
    st.lists(st.binary(max_size=40), max_size=3),
)
def test_any_shape_is_survived(header: dict[str, Any], parts: list[bytes]) -> None:
    receipt = Receipt(LIMITS)
    receipt.take(header, tuple(parts))
    notes = notes_of(header)
    outputs, dropped = receipt.read(notes)
    execution = Execution(outputs, "ok", None, "kept", 0, 0, 0, files_of(header), dropped)
    assert str(execution.to_json()).encode("utf-8")


def receipt_of(*outputs: dict[str, Any], pictures: dict[str, bytes] | None = None) -> Receipt:
    receipt = Receipt(LIMITS)
    pictures = pictures or {}
    receipt.take({"outputs": list(outputs), "pictures": list(pictures)}, tuple(pictures.values()))
    return receipt


def test_errors_are_few_whatever_the_box_sends() -> None:
    flood = [{"type": "error", "name": "E", "message": "m", "traceback": "t"}] * 700
    outputs, _ = receipt_of(*flood).read([])
    assert len(outputs) == MAX_ERRORS


def test_text_is_cut_again_and_made_valid() -> None:
    receipt = receipt_of({"type": "stream", "name": "stdout", "text": "x\ud83d" * 5000})
    (stream,), _ = receipt.read([])
    assert isinstance(stream, Stream)
    assert len(stream.text) <= LIMITS.output_chars + 2000
    assert stream.text.encode("utf-8")


@pytest.mark.parametrize(
    "data",
    [b"", b"GIF89a", png()[:40], b"\x89PNG\r\n\x1a\n" + bytes(100), png(500, 500)],
    ids=["empty", "gif", "cut off", "zeros", "too large"],
)
def test_bad_pictures_are_dropped_and_said(data: bytes) -> None:
    notes: list[str] = []
    outputs, _ = receipt_of({"type": "picture", "digest": "d"}, pictures={"d": data}).read(notes)
    assert outputs == ()
    assert notes[0].startswith("A picture is not shown: ")


def test_a_jpeg_of_very_many_scans_is_not_decoded() -> None:
    """Each scan costs a pass over all pixels: 2 MB of them would take minutes on the host."""
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16), "red").save(buffer, "JPEG")
    jpeg = buffer.getvalue()
    assert decode(jpeg, 10_000)[0].mime == "image/jpeg"
    scan = jpeg.index(b"\xff\xda")
    many = jpeg[:scan] + jpeg[scan:-2] * (MAX_SCANS + 1) + jpeg[-2:]
    with pytest.raises(ValueError, match="more than 100 scans"):
        decode(many, 10_000)
    assert sniff(jpeg)[0] == "image/jpeg"
    assert sniff(many)[0] == "other"


def test_equal_pixels_collapse_whatever_the_encoding() -> None:
    shown = [{"type": "picture", "digest": name} for name in "abc"]
    pictures = {"a": png(), "b": png(mode="L"), "c": png(colour=5)}
    outputs, dropped = receipt_of(*shown, pictures=pictures).read([])
    assert [o.data for o in outputs if isinstance(o, Display)] == [pictures["a"], pictures["c"]]
    assert dropped.pictures == 0


def test_more_pictures_than_allowed_are_counted() -> None:
    shown = [{"type": "picture", "digest": str(n)} for n in range(5)]
    pictures = {str(n): png(colour=n + 1) for n in range(5)}
    outputs, dropped = receipt_of(*shown, pictures=pictures).read([])
    assert len(outputs) == 2
    assert dropped.pictures == 3


def test_the_size_is_the_decoded_one() -> None:
    display, _ = decode(png(7, 3), 100)
    assert (display.mime, display.width, display.height) == ("image/png", 7, 3)


# --- a box that answers what it likes -------------------------------------------------------------

READY = encode({"type": "ready", "version": 1, "python": "3.11", "packages": {}, "facts": {}})
Script = Callable[[int], list[bytes]]
"""The number of the message from the host → what the box answers; b"" ends the stream."""


@dataclass
class ScriptedConnection:
    script: Script
    cause: str | None
    data_dir: str = "/mnt/data"
    work_dir: str = "/work"

    def __post_init__(self) -> None:
        self.killed = False
        self._count = 0
        self._answers: asyncio.Queue[bytes] = asyncio.Queue()

    async def read(self) -> bytes:
        return await self._answers.get()

    async def write(self, data: bytes) -> None:
        if b'"type":"preload"' in data:
            return
        for answer in self.script(self._count):
            self._answers.put_nowait(answer)
        self._count += 1

    async def kill(self) -> None:
        self.killed = True
        self._answers.put_nowait(b"")

    async def why_lost(self) -> str | None:
        return self.cause

    def enforced(self) -> dict[str, str]:
        return {}


@dataclass
class ScriptedWall:
    """A wall whose boxes follow a script, each the next one."""

    scripts: list[Script]
    cause: str | None = None
    name: WallName = "process"

    @asynccontextmanager
    async def open(self, spec: BoxSpec) -> AsyncGenerator[ScriptedConnection]:
        yield ScriptedConnection(self.scripts.pop(0), self.cause)


def done(number: int = 1, **more: Any) -> bytes:
    return encode({"type": "done", "id": number, "status": "ok", "kernel": "kept", **more})


def partial(number: int = 1) -> bytes:
    outputs = [{"type": "stream", "name": "stdout", "text": "so far\n"}]
    return encode({"type": "partial", "id": number, "outputs": outputs})


def fine(n: int) -> list[bytes]:
    return [READY] if n == 0 else [done(n), done(n + 1)]


def run_one(
    *scripts: Script, cause: str | None = None, seconds: float = 5.0
) -> tuple[Execution, Execution]:
    """The cell under test, and another one after it."""

    async def go() -> tuple[Execution, Execution]:
        wall = ScriptedWall(list(scripts), cause)
        async with open_box(wall, limits=LIMITS) as box:
            return await box.run("1", seconds), await box.run("2", seconds)

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("late", "status", "cause", "found"),
    [
        (False, "ok", None, ("ok", None)),
        (False, "error", None, ("error", None)),
        (False, "died", "out_of_memory", ("died", "out_of_memory")),
        (False, "died", "too_many_processes", ("died", "too_many_processes")),
        (False, "died", "signal:9", ("died", "signal:9")),
        (False, "died", "exit:255", ("died", "exit:255")),
        (False, "timeout", "deadline", None),
        (False, "died", None, None),
        (False, "died", "box_lost", None),
        (False, "died", "exit:-1", None),
        (False, "died", "exit:1\n", None),
        (False, "died", "signal:99999", None),
        (False, "died", ["exit:1"], None),
        (False, "ok", "deadline", None),
        (False, "error", "exit:1", None),
        (False, "failed", None, None),
        (False, None, None, None),
        (False, ["ok"], None, None),
        (True, "ok", None, ("timeout", "deadline")),
        (True, "error", None, ("timeout", "deadline")),
        (True, "timeout", "deadline", ("timeout", "deadline")),
        (True, "died", "exit:3", ("timeout", "deadline")),
        (True, "failed", None, None),
    ],
)
def test_what_a_box_may_say_of_an_end(
    late: bool, status: object, cause: object, found: tuple[str, str | None] | None
) -> None:
    assert ending({"status": status, "cause": cause}, late=late) == found


def test_the_deadline_is_the_hosts_whatever_the_box_says_then() -> None:
    """It answers the interrupt with `ok`: the cell took longer than it may all the same."""

    def slow(n: int) -> list[bytes]:
        return {0: [READY], 1: [], 2: [done(1)]}.get(n, [done(n - 1)])

    first, second = run_one(slow, seconds=0.1)
    assert (first.status, first.cause, first.kernel) == ("timeout", "deadline", "kept")
    assert second.status == "ok"


def test_what_was_said_before_the_cell_is_no_answer_to_it() -> None:
    early = done(1, outputs=[{"type": "stream", "name": "stdout", "text": "in advance"}])
    first, second = run_one(
        lambda n: [READY, early, done(2)] if n == 0 else [partial(n), early], seconds=0.3
    )
    assert (first.status, first.text) == ("ok", "in advance")  # when it was asked, not before
    assert (second.status, second.text) == ("timeout", "so far")


def test_frames_of_other_cells_are_ignored() -> None:
    first, _ = run_one(lambda n: [READY] if n == 0 else [done(99), partial(98), done(n)])
    assert first.status == "ok"
    assert first.outputs == ()


@pytest.mark.parametrize(
    "answer", [b"\xff" * 64, encode({"type": "x"})[:-1] + b"]" + b"\x00" * 40], ids=["huge", "torn"]
)
def test_noise_ends_the_box_and_is_the_cells_doing(answer: bytes) -> None:
    first, second = run_one(lambda n: [READY] if n == 0 else [partial(), answer], fine)
    assert (first.status, first.cause, first.kernel) == ("died", "box_lost", "restarted")
    assert first.text == "so far"
    assert "replaced" in (first.note or "")
    assert second.status == "ok"


def test_a_box_that_ends_by_the_cells_doing() -> None:
    first, second = run_one(
        lambda n: [READY] if n == 0 else [partial(), b""], fine, cause="out_of_memory"
    )
    assert (first.status, first.cause, first.text) == ("died", "out_of_memory", "so far")
    assert second.status == "ok"


def test_a_box_that_ends_without_guilt_is_infrastructure() -> None:
    with pytest.raises(BoxLost):
        run_one(lambda n: [READY] if n == 0 else [partial(), b""], fine)


def test_a_box_in_which_no_kernel_ever_started_is_infrastructure() -> None:
    with pytest.raises(BoxLost, match="no kernel could be started"):
        run_one(lambda n: [READY] if n == 0 else [b""], fine, cause=f"exit:{EXIT_NEVER_READY}")


def test_a_supervisor_that_does_not_answer_is_replaced() -> None:
    first, second = run_one(lambda n: [READY] if n == 0 else [partial()], fine, seconds=0.2)
    assert (first.status, first.cause, first.text) == ("timeout", "deadline", "so far")
    assert first.kernel == "restarted"
    assert second.status == "ok"


def test_measurements_that_make_no_sense_are_zero() -> None:
    first, _ = run_one(
        lambda n: (
            [READY] if n == 0 else [done(n, cpu_seconds=-5, peak_mb="much", files=[{"bytes": -1}])]
        )
    )
    assert (first.cpu_seconds, first.peak_mb) == (0.0, 0.0)
    assert first.files[0].bytes == 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (encode({"type": "refused", "reason": "input x: other bytes"}), InputRefused),
        (encode({"type": "hello"}), BoxLost),
        (b"noise" * 10, BoxLost),
        (b"", BoxLost),
    ],
)
def test_a_box_that_never_gets_ready(answer: bytes, error: type[SandboxError]) -> None:
    async def go() -> None:
        async with open_box(ScriptedWall([lambda _: [answer]]), limits=replace(LIMITS)):
            pytest.fail("the box was opened")

    with pytest.raises(error):
        asyncio.run(go())
