"""Saved responses, one JSON object a line, scored without a model: the input of `pot score`.

All lines are read and checked before any is scored, so that a bad one stops before any output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from benchmarks.errors import BenchmarkError, DataError
from benchmarks.registry import score_response
from benchmarks.sample import Score

_MOST_DIGITS = 4000
"""Of a whole number: Python reads 4300 and refuses more."""


@dataclass(frozen=True, slots=True)
class Response:
    """A line of the file."""

    id: str | int | None
    task: str
    answer: str
    """The gold."""
    response: str
    finish_reason: str | None
    reasoning: str | None
    meta: Mapping[str, Any] | None


def score_lines(benchmark: str, lines: Iterable[str], name: str) -> list[dict[str, Any]]:
    """One result a line, in order: `{"id", "score", "outcome", "parsed", "reason"}` and `stages`
    where the benchmark has several. Blank lines are passed over.

    Raises:
        DataError: a line cannot be used; it is named, counted from 1, with `name` for the file.
        BenchmarkError: no such benchmark.
    """
    read = [
        (number, _response(text, f"{name}, line {number}"))
        for number, text in enumerate(lines, start=1)
        if text.strip()
    ]
    return [_scored(benchmark, found, f"{name}, line {number}") for number, found in read]


def result(identity: str | int | None, score: Score) -> dict[str, Any]:
    """The JSON form of a score."""
    shown: dict[str, Any] = {
        "id": identity,
        "score": score.value,
        "outcome": score.outcome,
        "parsed": score.answer,
        "reason": score.reason,
    }
    if score.stages:
        shown["stages"] = [
            {"name": s.name, "verdict": s.verdict, "value": s.value, "reason": s.reason}
            for s in score.stages
        ]
    return shown


def _scored(benchmark: str, found: Response, place: str) -> dict[str, Any]:
    try:
        score = score_response(
            benchmark,
            found.task,
            found.answer,
            found.response,
            finish_reason=found.finish_reason,
            reasoning=found.reasoning,
            meta=found.meta,
        )
    except BenchmarkError as problem:
        raise DataError(f"{place}: {problem}") from None
    return result(found.id, score)


def _response(text: str, place: str) -> Response:
    try:
        line = json.loads(text, parse_int=_integer)
    except ValueError as problem:
        raise DataError(f"{place}: expected a JSON object, found no JSON: {problem}") from None
    except RecursionError:
        raise DataError(f"{place}: expected a JSON object, found one nested too deep") from None
    if not isinstance(line, dict):
        raise DataError(f"{place}: expected a JSON object, found {text.strip()[:40]!r}")
    fields = cast("dict[str, Any]", line)
    return Response(
        id=_identity(fields, place),
        task=_text(fields, "task", place),
        answer=_text(fields, "answer", place),
        # A server may send null for a message without text: a response without a span.
        response=_text(fields, "response", place, null=""),
        finish_reason=_optional(fields, "finish_reason", place),
        reasoning=_optional(fields, "reasoning", place),
        meta=_meta(fields, place),
    )


def _integer(digits: str) -> int | str:
    """A whole number; one that Python would refuse to read stays text."""
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


def _identity(fields: Mapping[str, Any], place: str) -> str | int | None:
    found = fields.get("id")
    if found is None or (isinstance(found, str | int) and not isinstance(found, bool)):
        return found
    raise DataError(f'{place}: expected text or a whole number as "id", found {found!r:.60}')


def _text(fields: Mapping[str, Any], name: str, place: str, null: str | None = None) -> str:
    if name not in fields:
        raise DataError(
            f'{place}: expected "{name}", found only {", ".join(fields) or "an empty object"}'
        )
    found = fields[name]
    if found is None and null is not None:
        return null
    if not isinstance(found, str):
        raise DataError(f'{place}: expected text as "{name}", found {found!r:.60}')
    return found


def _optional(fields: Mapping[str, Any], name: str, place: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name, place)


def _meta(fields: Mapping[str, Any], place: str) -> Mapping[str, Any] | None:
    """An object, or the JSON text of one, as the data sets carry it."""
    meta = fields.get("meta")
    if isinstance(meta, str):
        try:
            meta = json.loads(meta, parse_int=_integer) if meta.strip() else None
        except (ValueError, RecursionError) as problem:
            raise DataError(f'{place}: expected JSON text as "meta": {problem}') from None
    if meta is None:
        return None
    if not isinstance(meta, dict):
        raise DataError(f'{place}: expected an object as "meta", found {meta!r:.60}')
    return cast("dict[str, Any]", meta)
