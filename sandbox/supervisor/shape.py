"""Takes hostile JSON apart: the wanted shape, or an empty one."""

from __future__ import annotations

from typing import Any, cast


def as_dict(value: object) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value where it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []
