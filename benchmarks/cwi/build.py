"""`pot build cwi`: whole splits of generated items, made by a pool of processes over the cores.

The same seed and photographs give the same bytes, whatever the number of processes. Files are made
in a hidden folder beside their places and moved there when all of them are whole, so that a build
that fails or is interrupted leaves everything as it was.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.cwi import parquet
from benchmarks.cwi.make import Item, Order, make, order
from benchmarks.cwi.photos import Split, photos
from benchmarks.cwi.pool import results
from benchmarks.errors import DataError

COUNTS: dict[Split, int] = {"train": 60, "validation": 50, "test": 100}
"""Items a task, as in the published benchmark; tiers take turns."""
_WORTH_A_POOL = 8
"""Fewer items than this are made in this process: starting others takes longer."""


@dataclass(frozen=True, slots=True)
class Written:
    """One file, and how many draws were thrown away for it."""

    path: Path
    task: str
    split: Split
    items: int
    ill_posed: int
    shortcut: int


def build(
    out: Path,
    *,
    tasks: Sequence[str],
    splits: Sequence[Split],
    photo_folder: Path | None = None,
    seed: int = 0,
    count: int | None = None,
    force: bool = False,
    processes: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Generator[Written]:
    """Makes one file a task and split, yielding each when it is made; all are in their places when
    the iterator ends. Close it early and nothing is.

    `count` is the number of items in each file (default: as published); `progress` is called with
    the id of every item that is done. With `force` the folder may hold something: files of the same
    names are replaced, others stay.

    Raises:
        DataError: the folder holds something, photographs are missing, cannot be read, or give no
            item.
        OSError: the folder cannot be written.
    """
    if out.is_dir() and any(out.iterdir()) and not force:
        raise DataError(
            f"--out {out}: expected a new or empty folder; --force replaces there what this build "
            "makes and leaves the rest"
        )
    files: list[tuple[str, Split]] = [(task, split) for task in tasks for split in splits]
    found = {split: photos(photo_folder, split) for split in splits}
    sizes = [count or COUNTS[split] for _, split in files]
    orders = [
        order(task, split, number, seed, found[split])
        for (task, split), size in zip(files, sizes, strict=True)
        for number in range(size)
    ]
    with _beside(out) as hidden:
        with _made(orders, processes or _cores()) as items:
            for (task, split), size in zip(files, sizes, strict=True):
                rows: list[Item] = []
                for item in islice(items, size):
                    rows.append(item)
                    progress(item.id)
                parquet.write(parquet.path_of(hidden, task, split), rows)
                yield _written(parquet.path_of(out, task, split), task, split, rows)
        for task, split in files:
            place = parquet.path_of(out, task, split)
            place.parent.mkdir(exist_ok=True)
            parquet.path_of(hidden, task, split).replace(place)
        parquet.write_card(out)


@contextmanager
def _beside(out: Path) -> Generator[Path]:
    """A hidden folder in `out`, which is taken away again if nothing else came into it."""
    new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    hidden = out / f".building-{secrets.token_hex(8)}"
    try:
        hidden.mkdir()
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        if new:
            with suppress(OSError):  # not empty: that is what it was made for
                out.rmdir()


def _written(path: Path, task: str, split: Split, rows: list[Item]) -> Written:
    ill_posed = sum(item.ill_posed for item in rows)
    return Written(path, task, split, len(rows), ill_posed, sum(item.shortcut for item in rows))


def _made(orders: Sequence[Order], processes: int) -> AbstractContextManager[Iterator[Item]]:
    if processes == 1 or len(orders) < _WORTH_A_POOL:
        return nullcontext(map(make, orders))
    return results(make, orders, processes)


def _cores() -> int:
    """Those this process may use, where the system says so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
