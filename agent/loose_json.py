"""JSON as models write it. Pure, and it never raises: what cannot be read comes with the complaint.

Strict JSON first; then each known slip alone: escapes outside of strings, wrong escapes inside,
the whole escaped once more, Python's own spelling. Text that holds JSON is opened again.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any, cast

from benchmarks.syntax import compiles

Value = dict[str, Any] | list[Any] | str

_ONE_FENCE = re.compile(r"```(?:json)?\s*(.*)```", re.DOTALL | re.IGNORECASE)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?|\\[nrt]', re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|)', re.DOTALL)
_LOOSE_END = " \t\r\n}])"
"""May follow the value: brackets that close what was never opened."""
_MOST_DIGITS = 4000
_UNREADABLE = "nested too deep"


def _integer(digits: str) -> int:
    return int(digits) if len(digits) < _MOST_DIGITS else 0


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)


def parse(text: str) -> object:
    """The value of strict JSON; numbers of any length.

    Raises:
        ValueError: it is none, or is nested too deep.
    """
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError(_UNREADABLE) from None


def dump(value: object) -> str:
    """JSON text, `""` for what is nested too deep."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def load(text: str) -> tuple[Value | None, str]:
    """An object, a list or a text, or None and the first complaint."""
    bare = text.strip().lstrip("\ufeff")
    fenced = _ONE_FENCE.fullmatch(bare)
    bare = fenced.group(1).strip() if fenced else bare
    value, problem = _decoded(bare)
    inner = value
    while isinstance(inner, str) and inner.lstrip()[:1] in ("{", "[", '"'):  # encoded once more
        inner, _ = _decoded(inner.strip())
        value = value if inner is None else inner
    return value, problem


def _decoded(text: str) -> tuple[Value | None, str]:
    problem = ""
    for candidate in _readings(text):
        try:
            value, end = _DECODER.raw_decode(candidate)
        except (ValueError, RecursionError) as error:
            problem = problem or (str(error) if isinstance(error, ValueError) else _UNREADABLE)
            continue
        if candidate[end:].strip(_LOOSE_END):
            problem = problem or f"Extra data: char {end}"
            continue
        if isinstance(value, dict | list | str):
            return cast("Value", value), ""
        return None, "not an object"
    values = _python_literal(text)
    return values, problem if values is None else ""


def _readings(text: str) -> Iterator[str]:
    yield text
    yield _without_loose_escapes(text)
    yield _with_doubled_escapes(text)
    try:
        yield str(_DECODER.decode(f'"{text}"'))
    except ValueError:  # it holds a quote that is not escaped
        return


def _without_loose_escapes(text: str) -> str:
    """`\\n` between the members, outside of strings, where only white space may stand."""
    return _STRING.sub(lambda m: m.group() if m.group()[0] == '"' else " ", text).lstrip()


def _with_doubled_escapes(text: str) -> str:
    """`\\d` and the like become `\\\\d`: the backslash was meant as one."""
    return _BAD_ESCAPE.sub(lambda m: m.group() if len(m.group()) > 1 else "\\\\", text)


def _python_literal(text: str) -> dict[str, Any] | None:
    """`{'code': '…'}` in Python's own spelling: single quotes, a comma at the end."""
    if not text.startswith("{") or not compiles(text):
        return None
    try:
        values = ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return cast("dict[str, Any]", values) if isinstance(values, dict) else None
