# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
"""Items written as the Hub has them: `<task>/<split>-00000-of-00001.parquet`, and the data card.

The schema carries the features that `datasets` reads, so that image columns come back as pictures.
Files appear by rename: whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cwi.make import Item
from benchmarks.cwi.rules import RULES

_TEXT = ("id", "prompt", "answer", "difficulty", "meta")
_ORDER = ("id", "image", "image_2", "prompt", "answer", "difficulty", "meta")


def path_of(out: Path, task: str, split: str) -> Path:
    return out / task / f"{split}-00000-of-00001.parquet"


def write(path: Path, items: Sequence[Item]) -> None:
    """Writes the file in place of any earlier one.

    Raises:
        OSError: the folder cannot be written.
    """
    import pyarrow as pa  # here: half a second that `pot --help` should not pay
    import pyarrow.parquet as pq

    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    types = {name: pa.string() if name in _TEXT else image for name in _ORDER}
    features: dict[str, dict[str, str]] = {
        name: {"dtype": "string", "_type": "Value"} if name in _TEXT else {"_type": "Image"}
        for name in _ORDER
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    schema = pa.schema([(name, types[name]) for name in _ORDER], metadata=metadata)
    rows = [_row(item) for item in items]
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary, row_group_size=100)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_card(out: Path) -> None:
    """`README.md` with one config for each task that lies in the folder, so that
    `datasets.load_dataset(folder, task)` finds the splits."""
    lines = ["---", "configs:"]
    for task in RULES:
        splits = sorted({file.name.split("-")[0] for file in (out / task).glob("*-*.parquet")})
        if splits:
            lines += [f"- config_name: {task}", "  data_files:"]
        for split in splits:
            lines += [f"  - split: {split}", f"    path: {task}/{split}-*"]
    lines += ["---", "", "Items made by `pot build cwi`; each row's `meta` says how.", ""]
    temporary = out / f".README.md.{os.getpid()}"
    temporary.write_text("\n".join(lines), encoding="utf-8")
    temporary.replace(out / "README.md")


def _row(item: Item) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(item, name) for name in _TEXT}
    for column, data in (("image", item.image), ("image_2", item.image_2)):
        path = f"{item.id.replace('/', '_')}_{column}.png"
        row[column] = None if data is None else {"bytes": data, "path": path}
    return row
