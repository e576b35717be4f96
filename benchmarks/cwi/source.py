# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
"""CwI-Bench from a folder in the Hub's layout: `<task>/<split>-*.parquet`, read into Samples.

Nothing is trusted: columns are checked, ids are unique over all that is loaded, each gold must be
of its task's type and score 1 against itself, and a picture that carries the gold in its metadata
is refused. The bytes of the pictures stay as they are. The data:
https://huggingface.co/datasets/ytz009/CwI-Bench
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cwi.rules import RULES, score
from benchmarks.errors import DataError, GoldError
from benchmarks.pictures import leaks, suffix
from benchmarks.sample import Picture, Sample

_NEEDED = ("id", "prompt", "answer")
_OPTIONAL = ("difficulty", "meta")
_PICTURE = re.compile(r"image(?:_([1-9]\d?))?")
_LIST = "images"
"""A column of lists; the first picture of one is number 1, as the column `image` is."""
GENERATOR = "potrunner"
"""`meta.generator` of items made here; theirs is the only `meta` whose gold has a known form."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a parquet file, without its pictures."""

    id: str
    task: str
    file: Path
    number: int
    """Counted from 0 in its file."""
    prompt: str
    answer: str
    difficulty: str
    meta: Mapping[str, Any]

    @property
    def place(self) -> str:
        return f"{self.file}, row {self.number}"


def load(data: Path, split: str, tasks: Iterable[str]) -> list[Row]:
    """All rows of these tasks, checked, in the order of the tasks and files.

    Raises:
        DataError: a folder, file, column or row cannot be used.
        GoldError: a gold answer is not of its task's type.
    """
    rows = [row for task in tasks for row in _task_rows(data, split, task)]
    seen: dict[str, Row] = {}
    for row in rows:
        if row.id in seen:
            raise DataError(
                f"expected unique ids, found {row.id!r} twice: {seen[row.id].place} and {row.place}"
            )
        seen[row.id] = row
        _check_gold(row)
    return rows


def tasks_in(data: Path, split: str) -> list[str]:
    """The tasks that have this split in the folder, in the order of the table of rules.

    Raises:
        DataError: no such folder, or nothing of CwI in it.
    """
    if not data.is_dir():
        hint = "`pot build cwi` makes one"
        if len(data.parts) == 2 and not data.is_absolute():
            hint += f"; for the Hub's {data} pass --data hub:{data}"
        raise DataError(f"expected a data folder, found none at {data}; {hint}")
    found = [task for task in RULES if _shards(data, split, task)]
    if not found:
        there = _splits_there(data) or "none"
        raise DataError(
            f"expected files such as circular_shift/{split}-00000-of-00001.parquet in {data}, "
            f"found {there}; `pot build cwi --split {split} --out {data} --force` makes them"
        )
    return found


def samples(rows: Iterable[Row]) -> Iterator[Sample]:
    """The rows with their pictures; each file is opened once for neighbouring rows.

    Raises:
        DataError: a row has no picture, or one whose metadata holds the gold answer.
    """
    by_file: dict[Path, list[Row]] = {}
    for row in rows:
        by_file.setdefault(row.file, []).append(row)
    for file, wanted in by_file.items():
        yield from _with_pictures(file, wanted)


def _shards(data: Path, split: str, task: str) -> list[Path]:
    return sorted((data / task).glob(f"{split}-*.parquet"))


def _splits_there(data: Path) -> str:
    names = sorted({path.name.split("-")[0] for path in data.glob("*/*-*.parquet")})
    return f"only the splits {', '.join(names)}" if names else ""


def _task_rows(data: Path, split: str, task: str) -> Iterator[Row]:
    shards = _shards(data, split, task)
    if not shards:
        raise DataError(
            f"expected {task}/{split}-*.parquet in {data}, found none; "
            f"`pot build cwi --tasks {task} --split {split} --out {data} --force` makes it, if "
            "`pot list` shows a generator for it"
        )
    for file in shards:
        yield from _file_rows(file, task)


def _file_rows(file: Path, task: str) -> Iterator[Row]:
    import pyarrow.parquet as pq  # here: half a second that `pot --help` should not pay

    with _readable(file):
        names = pq.read_schema(file).names
        missing = [name for name in _NEEDED if name not in names]
        if not _picture_columns(names):
            missing.append("image")
        if missing:
            raise DataError(
                f"expected the columns {', '.join(_NEEDED)}, image in {file}, "
                f"found {', '.join(names)}: {', '.join(missing)} missing"
            )
        if "image" in names and "image_1" in names:
            raise DataError(f"expected one column of first pictures in {file}: image or image_1")
        # Not `read_table`: that imports pandas, 0.4 s.
        table = pq.ParquetFile(file).read([n for n in (*_NEEDED, *_OPTIONAL) if n in names])
        rows = table.to_pylist()
    for number, row in enumerate(rows):
        yield _row(row, file, number, task)


@contextmanager
def _readable(file: Path) -> Generator[None]:
    """A torn file shows anywhere: in its footer, in a page, in the text of a cell."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as problem:
        why = " ".join(str(problem).split())
        raise DataError(f"expected a parquet file, {file} cannot be read: {why}") from None


def _picture_columns(names: Iterable[str]) -> list[str]:
    """`image` or `image_1`, `image_2`, … in order of their numbers; else `images`."""
    numbered = {name: int(found[1] or 1) for name in names if (found := _PICTURE.fullmatch(name))}
    return sorted(numbered, key=numbered.__getitem__) or [n for n in names if n == _LIST]


def _row(row: Mapping[str, Any], file: Path, number: int, task: str) -> Row:
    place = f"{file}, row {number}"
    if row["id"] is None:
        raise DataError(f"expected an id in {place}, found null")
    for name in ("prompt", "answer"):
        if not isinstance(row[name], str):
            raise DataError(f"expected text as {name} in {place}, found {row[name]!r}")
    return Row(
        id=str(row["id"]),
        task=task,
        file=file,
        number=number,
        prompt=row["prompt"],
        answer=row["answer"],
        difficulty=str(row.get("difficulty") or ""),
        meta=_meta(row.get("meta"), place),
    )


def _meta(text: Any, place: str) -> Mapping[str, Any]:
    if not text:
        return {}
    try:
        meta = json.loads(text)
    except (TypeError, ValueError, RecursionError) as problem:
        raise DataError(f"expected JSON text as meta in {place}: {problem}") from None
    if not isinstance(meta, dict):
        raise DataError(f"expected a JSON object as meta in {place}, found {text[:60]!r}")
    return meta


def _check_gold(row: Row) -> None:
    try:
        score(row.task, row.answer, row.answer, row.meta)
        gold = row.meta.get("gold") if row.meta.get("generator") == GENERATOR else None
        if gold is not None:
            flat = " ".join(str(number) for number in gold)
            if score(row.task, row.answer, flat).value != 1:
                raise GoldError(f"the gold answer {row.answer!r} is not the {gold} of its meta")
    except GoldError as problem:
        raise GoldError(f"{row.place} ({row.id}): {problem}") from None


def _with_pictures(file: Path, rows: list[Row]) -> Iterator[Sample]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as parquet:
        columns = _picture_columns(parquet.schema_arrow.names)
        wanted = {row.number: row for row in rows}
        start = 0
        for group in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(group).num_rows
            here = [number for number in wanted if start <= number < start + count]
            if here:
                with _readable(file):
                    table = parquet.read_row_group(group, columns=columns)
                for number in here:
                    with _readable(file):
                        structs = table.slice(number - start, 1).to_pylist()[0]
                    yield _sample(wanted[number], structs)
            start += count


def _sample(row: Row, structs: Mapping[str, Any]) -> Sample:
    pictures: list[Picture] = []
    for number, column, struct in _numbered(structs):
        data = _bytes(row, column, struct)
        if data is None:
            continue
        if leaks(data, row.answer):
            raise DataError(
                f"{row.place} ({row.id}): the metadata of {column} holds the gold answer; "
                "write the picture again without metadata"
            )
        pictures.append(Picture(f"image_{number}.{suffix(data)}", data))
    if not pictures:
        raise DataError(f"expected a picture in {row.place} ({row.id}), found null in every column")
    return Sample(
        id=row.id,
        benchmark="cwi",
        task=row.task,
        prompt=row.prompt,
        pictures=tuple(pictures),
        target=row.answer,
        group=RULES[row.task].group,
        difficulty=row.difficulty,
        meta=row.meta,
    )


def _numbered(structs: Mapping[str, Any]) -> Iterator[tuple[int, str, Any]]:
    """Number, column and content of each picture; a null one keeps its number to itself."""
    if _LIST in structs:
        for number, struct in enumerate(structs[_LIST] or (), start=1):
            yield number, f"{_LIST}[{number}]", struct
        return
    for column in _picture_columns(structs):
        found = _PICTURE.fullmatch(column)
        yield int(found[1] or 1) if found else 1, column, structs[column]


def _bytes(row: Row, column: str, struct: Any) -> bytes | None:
    """The bytes of a `datasets` Image struct; a struct with a path alone names a file beside."""
    if struct is None:
        return None
    data = struct.get("bytes") if isinstance(struct, dict) else struct
    if isinstance(data, bytes):
        return data
    path = struct.get("path") if isinstance(struct, dict) else None
    if isinstance(path, str) and (row.file.parent / Path(path).name).is_file():
        return (row.file.parent / Path(path).name).read_bytes()
    if data is None and path is None:
        return None
    raise DataError(f"expected image bytes as {column} in {row.place} ({row.id}), found none")
