"""What each setting may be beyond its type: ranges, names, text that can be sent and written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

_RANGES: dict[str, tuple[float, float]] = {
    "limit": (1, 1e9),
    "repeats": (1, 10_000),
    "temperature": (0, 100),
    "top_p": (0, 1),
    "max_tokens": (1, 1e9),
    "request_timeout": (0.001, 1e6),
    "max_turns": (1, 10_000),
    "token_limit": (1, 1e12),
    "time_limit": (0.001, 1e9),
    "max_images": (1, 100_000),
    "max_pixels": (1024, 1e9),
    "max_image_bytes": (10_000, 1e12),
    "workers": (1, 10_000),
    "seed": (-(2**63), 2**63 - 1),
}
_NOT_EMPTY = ("model", "data", "split", "image_tag", "runtime")
_SPLIT = re.compile(r"[\w.-]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[ -~]*")


def text_fault(values: Mapping[str, Any]) -> str | None:
    """What is wrong with the values as JSON and as text, whatever their types; one line."""
    for name, value in values.items():
        try:
            json.dumps(value, allow_nan=False)
            texts = list(_texts(value))
            "".join(texts).encode("utf-8")
        except UnicodeEncodeError:
            return f"{flag(name)}: expected text in UTF-8, found a lone surrogate in it"
        except (TypeError, RecursionError) as error:
            return f"{flag(name)}: expected values that JSON has, found others ({error})"
        except ValueError:
            return f"{flag(name)}: expected finite numbers, found nan or infinity"
        if any("\0" in text for text in texts):
            return f"{flag(name)}: expected text without NUL characters"
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inside in cast("Mapping[object, object]", value).items():
            yield from _texts(key)
            yield from _texts(inside)
    elif isinstance(value, list | tuple):
        for inside in cast("Sequence[object]", value):
            yield from _texts(inside)


def range_fault(values: Mapping[str, Any]) -> str | None:
    """What is wrong with settings of the right types; one line."""
    for name, (least, most) in _RANGES.items():
        value = values[name]
        if value is None or least <= value <= most:
            continue
        if value > most and value != float("inf"):
            return f"{flag(name)} expected at most {most:g}, found {value:g}"
        return f"{flag(name)} expected a finite number, at least {least:g}, found {value:g}"
    for name in _NOT_EMPTY:
        if values[name] is not None and not values[name].strip():
            return f"{flag(name)}: expected a name, found {values[name]!r}"
    if not _SPLIT.fullmatch(values["split"]):
        return f"--split: expected letters, digits, _, - and ., found {values['split'][:40]!r}"
    for name, value in values["headers"].items():
        if not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            return f"--header {name[:40]!r}: expected printable ASCII, no blanks in its name"
    return None


def flag(name: str) -> str:
    """`max_turns` → `--max-turns`."""
    return "--" + name.replace("_", "-")
