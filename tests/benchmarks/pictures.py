# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Small pictures and data folders for the tests of the reader."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

PROMPT = "Which shift was applied?"


def encoded(form: str = "PNG", colour: int = 90, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), (colour, 20, 30)).save(buffer, form, **options)
    return buffer.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def with_chunk(kind: bytes, body: bytes, *, last: bool = False) -> bytes:
    """A PNG with one more chunk, after its header or after its pixels."""
    data = encoded()
    at = data.rindex(b"IEND") - 4 if last else data.index(b"IDAT") - 4
    return data[:at] + chunk(kind, body) + data[at:]


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"circular_shift/test/{number}",
        "image": {"bytes": encoded(), "path": None},
        "image_2": None,
        "prompt": PROMPT,
        "answer": "-37,112",
        "difficulty": "easy",
        "meta": "{}",
    } | changes


def folder(
    root: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    file: str = "test-00000-of-00001.parquet",
    task: str = "circular_shift",
) -> Path:
    """Writes the rows as one file of a data folder."""
    (root / task).mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist([dict(each) for each in rows])
    pq.write_table(table, root / task / file)
    return root
