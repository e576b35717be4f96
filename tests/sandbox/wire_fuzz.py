"""Hostile bytes for both ends of the wire, from a seed: frames that are right, wrong in a field,
out of order, mutated, cut, or no frames at all; and what the host may make of a cell in the end.
"""

from __future__ import annotations

import json
import random
import struct
from typing import Any

from sandbox.outputs import Execution
from sandbox.spec import Limits
from sandbox.supervisor.wire import MAX_FRAME, MAX_HEADER, encode

LIMITS = Limits(
    cell_seconds=0.06, grace_seconds=0.02, output_chars=400, pictures=2, picture_pixels=10_000
)
CAUSES = ("out_of_memory", "too_many_processes", "signal:", "exit:", "box_lost")

_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 2**31, 2**63, 10**400, 0.5, float("nan"), float("inf"), 1e308,
    "", "x", "\ud800", "\0", "a\nb", "￿", [], {}, [[]], [None], {"": {}}, ["x"] * 300, {"id": 1},
)  # fmt: skip
_TYPES = (
    "ready", "refused", "preloaded", "began", "partial", "done", "hello", "run", "interrupt",
    "kill", "preload", "", "x", "DONE",
)  # fmt: skip
_RAW_HEADERS = (
    b"", b"{", b"null", b"[]", b'"done"', b"{}", b'{"type":"done","type":1,"parts":[]}',
    b'{"type":"done","parts":[],"parts":[9]}', b'{"type":"done","id":NaN,"parts":[]}',
    b'{"type":"done","id":1e999,"parts":[]}',
    b'{"type":"done","id":' + b"9" * 5000 + b',"parts":[]}',
    b'{"type":"done","parts":' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'{"type":"done","id":1,"cause":' + b"[" * 700 + b"]" * 700 + b',"parts":[]}',
    b'{"type":"done","id":1,"notes":[' + b'{"a":' * 300 + b"1" + b"}" * 300 + b'],"parts":[]}',
    b'{"type":"\\ud800","parts":[]}', b'\xff\xfe{"type":"done"}',
    b'\xef\xbb\xbf{"type":"x","parts":[]}',
    '{"type":"done","parts":[]}'.encode("utf-16"), b'{"type":"done","parts":[]}\0', b"\x80" * 40,
    b'{"type":"done","id":1,"status":"ok","parts":[-1]}', b'{"type":"done","parts":[1.0]}',
    b'{"type":"done","parts":[true]}', b'{"type":"done","parts":"ab"}', b'{"type":"done"}',
)  # fmt: skip


class Fuzz:
    """One seed's hostile bytes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.frames = 0
        self.causes: list[str | None] = []
        """What the wall was asked and said."""

    def odd(self, depth: int = 2) -> Any:
        pick = self.random
        if depth and pick.random() < 0.3:
            return [self.odd(depth - 1) for _ in range(pick.randrange(4))]
        if depth and pick.random() < 0.3:
            keys = ("type", "name", "text", "digest", "path", "bytes", "chars", "traceback")
            return {pick.choice(keys): self.odd(depth - 1) for _ in range(pick.randrange(4))}
        return pick.choice(_ODD)

    def right(self, number: int = 1) -> bytes:
        """A frame as a supervisor would send it."""
        pick = self.random
        outputs: list[dict[str, Any]] = [
            {"type": "stream", "name": "stdout", "text": "so far\n"},
            {"type": "value", "text": "7"},
            {"type": "picture", "digest": "d"},
            {"type": "error", "name": "E", "message": "m", "traceback": "t"},
        ]
        shown = pick.sample(outputs, pick.randrange(len(outputs)))
        common = {"id": number, "outputs": shown, "pictures": ["d"], "dropped": {"chars": 1}}
        frames: list[tuple[dict[str, Any], list[bytes]]] = [
            ({"type": "began", "id": number}, []),
            ({"type": "partial", **common}, [b"\x89PNG\r\n\x1a\n" + bytes(60)]),
            ({"type": "preloaded"}, []),
            ({"type": "done", "status": "ok", "cause": None, **common}, [b"\xff\xd8\xff"]),
            ({"type": "done", "status": "error", "cause": None, **common}, [b""]),
            ({"type": "done", "status": "died", "cause": "exit:3", **common}, [b""]),
            ({"type": "done", "status": "timeout", "cause": "deadline", **common}, [b""]),
            ({"type": "run", "id": number}, [b"print(1)"]),
            ({"type": "interrupt", "id": number}, []),
        ]
        return encode(*pick.choice(frames))

    def wrong(self, number: int = 1) -> bytes:
        """A frame that is whole, with fields of any shape."""
        pick = self.random
        header: dict[str, Any] = {"type": pick.choice(_TYPES), "id": number}
        fields = (
            "id", "status", "cause", "kernel", "outputs", "pictures", "dropped", "files", "notes",
            "cpu_seconds", "peak_mb", "reason", "version", "packages", "facts", "python",
        )  # fmt: skip
        for name in pick.sample(fields, pick.randrange(6)):
            header[name] = self.odd()
        if pick.random() < 0.5:
            header["status"] = pick.choice(("ok", "error", "died", "timeout", "OK", "box_lost"))
            lies = ("deadline", "box_lost", "exit:7", "exit:-1", "signal:9999", "", "x" * 99)
            header["cause"] = pick.choice((None, *lies))
        parts = [bytes(pick.randrange(50)) for _ in range(pick.randrange(3))]
        text = json.dumps({**header, "parts": [len(part) for part in parts]}).encode()
        return frame(text, b"".join(parts))

    def broken(self) -> bytes:
        """Bytes whose lengths or header are none of a frame."""
        pick = self.random
        lengths = (
            0, 1, 3, 4, 5, 8, 9, 100, MAX_HEADER, MAX_HEADER + 1, MAX_FRAME, MAX_FRAME + 1,
            2**31 - 1, 2**31, 2**32 - 1, 2**32 - 4,
        )  # fmt: skip
        kind = pick.random()
        if kind < 0.5:
            return frame(pick.choice(_RAW_HEADERS), pick.randbytes(pick.choice((0, 0, 1, 9))))
        if kind < 0.8:
            return struct.pack(">II", pick.choice(lengths), pick.choice(lengths)) + pick.randbytes(
                pick.randrange(60)
            )
        return pick.randbytes(pick.randrange(200))

    def mutated(self, data: bytes) -> bytes:
        pick = self.random
        changed = bytearray(data)
        for _ in range(pick.randrange(1, 4)):
            at = pick.randrange(len(changed) + 1)
            kind = pick.randrange(5)
            if kind == 0 and at < len(changed):
                changed[at] = pick.choice((0, 0x7F, 0x80, 0xFF, pick.randrange(256)))
            elif kind == 1:
                del changed[at : at + pick.randrange(1, 9)]
            elif kind == 2:
                changed[at:at] = pick.randbytes(pick.randrange(1, 9))
            elif kind == 3:
                changed[at:at] = changed[at : at + 20]
            else:
                del changed[at:]
        return bytes(changed)

    def piece(self, number: int = 1, whole: float = 0.7) -> bytes:
        """One frame; `whole` is the share of those that are frames at all."""
        self.frames += 1
        kind = self.random.random()
        if kind < whole / 2:
            return self.right(number)
        if kind < whole:
            return self.wrong(number)
        if kind < (1 + whole) / 2:
            return self.mutated(self.right(number))
        return self.broken()

    def cuts(self, data: bytes) -> list[bytes]:
        """The same bytes in pieces, now and then one by one."""
        pick = self.random
        if pick.random() < 0.2 and len(data) < 2000:
            return [data[n : n + 1] for n in range(len(data))]
        at, pieces = 0, list[bytes]()
        while at < len(data):
            size = pick.choice((1, 3, 4, 7, 8, 50, 5000))
            pieces.append(data[at : at + size])
            at += size
        return pieces


def frame(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


def problem(execution: Execution, limit: float) -> str | None:
    """What must not be in a cell's record, whatever a box said; None when all is as it must be."""
    status, cause = execution.status, execution.cause
    honest = {
        "ok": cause is None,
        "error": cause is None,
        "timeout": cause == "deadline" and execution.seconds >= limit,
        "died": cause is not None and cause.startswith(CAUSES) and execution.kernel == "restarted",
    }
    if not honest[status]:
        return f"status {status}, cause {cause}, kernel {execution.kernel}, {execution.seconds} s"
    text = json.dumps(execution.to_json(), allow_nan=False, ensure_ascii=False)
    if len(text.encode("utf-8")) > 300_000:
        return f"a record of {len(text)} characters"
    if len(execution.text) > LIMITS.output_chars + 50_000 or len(execution.pictures) > 2:
        return f"{len(execution.text)} characters and {len(execution.pictures)} pictures"
    return None
