"""Benchmarks by name: loading samples, scoring a response. Dict literals; importing does nothing.

A new benchmark is one entry in `LOADERS` and one in `_SCORERS`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import hub
from benchmarks.answers import raw_span
from benchmarks.cwi import rules, source
from benchmarks.errors import BenchmarkError, DataError
from benchmarks.sample import Sample, Score


def load(
    benchmark: str,
    *,
    data: str | Path | None = None,
    split: str = "test",
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    ids: Sequence[str] | None = None,
) -> list[Sample]:
    """The samples of a benchmark, every gold checked.

    `limit` takes that many samples evenly over the tasks, the first of each; `ids` takes exactly
    these. Both may be given: the limit then holds for the chosen ones.

    Raises:
        BenchmarkError: unknown benchmark or task; DataError and GoldError for what is in the data.
    """
    if benchmark not in LOADERS:
        raise BenchmarkError(
            f"expected a benchmark, found {benchmark!r}{_suggest(benchmark, LOADERS)}"
        )
    return LOADERS[benchmark](data, split, tasks, limit, ids)


def pinned(data: str, *, split: str = "test", tasks: Sequence[str] | None = None) -> str:
    """The data, a data set of the Hub (`hub:ORG/NAME`) downloaded and named by its commit.

    Raises:
        DataError: it is no reference, or has no such files. DataUnavailable: it cannot be had now.
    """
    reference = hub.parse(data)
    return data if reference is None else str(hub.fetch(reference, _files(split, tasks)).pinned)


def score_response(
    benchmark: str,
    task: str,
    target: str,
    response: str,
    *,
    finish_reason: str | None = None,
    reasoning: str | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Score:
    """The score of a whole response: its answer span is read, then scored. Pure.

    A missing `finish_reason` means that an unclosed last span does not count. `reasoning` is the
    separate reasoning channel; no benchmark here reads an answer from it.

    Raises:
        BenchmarkError: unknown benchmark or task. GoldError: the target is not of its type.
    """
    del reasoning
    score = score_span(benchmark, task, target, raw_span(response, finish_reason), meta)
    if score.outcome == "no_span" and not response.strip():
        return replace(score, reason="the response is empty")
    return score


def score_span(
    benchmark: str,
    task: str,
    target: str,
    span: str | None,
    meta: Mapping[str, Any] | None = None,
) -> Score:
    """The score of an answer span that was read already (None: the response had none). Pure.

    Raises:
        BenchmarkError: unknown benchmark or task. GoldError: the target is not of its type.
    """
    if benchmark not in _SCORERS:
        raise BenchmarkError(
            f"expected a benchmark, found {benchmark!r}{_suggest(benchmark, _SCORERS)}"
        )
    return _SCORERS[benchmark](task, target, span, meta)


def check_tasks(tasks: Iterable[str], known: Iterable[str], kind: str = "task") -> list[str]:
    """The tasks (or what `kind` says), each once and known.

    Raises:
        BenchmarkError: naming the first unknown one, with the nearest known names.
    """
    chosen = list(dict.fromkeys(tasks))
    names = list(known)
    for task in chosen:
        if task not in names:
            raise BenchmarkError(f"expected a {kind}, found {task!r}{_suggest(task, names)}")
    return chosen


def _suggest(word: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if near:
        return f"; did you mean {', '.join(near)}?"
    return f"; known: {', '.join(names[:40])}{' …' if len(names) > 40 else ''}"


def _load_cwi(
    data: str | Path | None,
    split: str,
    tasks: Sequence[str] | None,
    limit: int | None,
    ids: Sequence[str] | None,
) -> list[Sample]:
    if data is None:
        raise DataError(
            "expected a data folder for cwi, found none; make one with `pot build cwi --out DIR` "
            "and pass --data DIR, or take the Hub's with --data hub:ytz009/CwI-Bench"
        )
    reference = hub.parse(data)
    folder = hub.fetch(reference, _files(split, tasks)).folder if reference else Path(data)
    there = source.tasks_in(folder, split)
    rows = source.load(folder, split, there if not tasks else check_tasks(tasks, rules.RULES))
    return list(source.samples(_chosen(rows, limit, ids)))


def _files(split: str, tasks: Sequence[str] | None) -> list[str]:
    """The files of a data set that hold these tasks."""
    return [f"{task}/{split}-*.parquet" for task in check_tasks(tasks or rules.RULES, rules.RULES)]


def _chosen(
    rows: list[source.Row], limit: int | None, ids: Sequence[str] | None
) -> list[source.Row]:
    if ids is not None:
        by_id = {row.id: row for row in rows}
        for wanted in ids:
            if wanted not in by_id:
                hint = _suggest(wanted, by_id)
                raise DataError(f"expected an id of the data, found {wanted!r}{hint}")
        rows = [by_id[wanted] for wanted in dict.fromkeys(ids)]
    if limit is None or limit >= len(rows):
        return rows
    place_in_task: dict[str, int] = {}
    ranks: list[int] = []
    for row in rows:
        ranks.append(place_in_task.get(row.task, 0))
        place_in_task[row.task] = ranks[-1] + 1
    first = sorted(range(len(rows)), key=lambda at: (ranks[at], at))[:limit]
    return [rows[at] for at in sorted(first)]


_Loader = Callable[
    [str | Path | None, str, Sequence[str] | None, int | None, Sequence[str] | None], list[Sample]
]
_Scorer = Callable[[str, str, str | None, Mapping[str, Any] | None], Score]

LOADERS: Mapping[str, _Loader] = {"cwi": _load_cwi}
_SCORERS: Mapping[str, _Scorer] = {"cwi": rules.score}
