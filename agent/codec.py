"""Messages and replies as JSON and back: the one place for the record and the reply cache.

Pictures are never inlined: `store` puts an image's bytes away and returns its reference (usually
`<sha256>.<ext>`), `load` fetches them again. Reading refuses what does not fit with a `CodecError`
of one line, so that a torn or hand-edited file is never half understood.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from agent.messages import Image, Message, Part, Reply, Text

Store = Callable[[Image], str]
Load = Callable[[str], bytes]


class CodecError(ValueError):
    """JSON that is not what this module writes; the text says where and what was expected."""


def image_reference(image: Image) -> str:
    """The name under which a picture is usually stored: `<sha256>.png` or `<sha256>.jpg`."""
    return f"{image.sha256}.{'jpg' if image.mime == 'image/jpeg' else 'png'}"


def message_to_json(message: Message, store: Store) -> dict[str, Any]:
    """`{"role", "parts", "tool_calls", "tool_call_id"}`; a part is
    `{"type": "text", "text"}` or `{"type": "image", "image": reference, …}`."""
    return {
        "role": message.role,
        "parts": [_part_to_json(part, store) for part in message.parts],
        "tool_calls": [dataclasses.asdict(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
    }


def message_from_json(data: Mapping[str, Any], load: Load) -> Message:
    """The inverse of `message_to_json`.

    Raises:
        CodecError: a field is missing or of the wrong type.
    """
    parts: object = data.get("parts")
    if not isinstance(parts, list):
        raise CodecError(f"message: expected a list under `parts`, found {type(parts).__name__}")
    parts = [_part_fields(part, load) for part in cast("list[object]", parts)]
    return cast(Message, _validate(Message, {**data, "parts": parts}))


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """All fields of a reply; tool calls as `{"id", "name", "arguments"}`."""
    return dataclasses.asdict(reply)


def reply_from_json(data: Mapping[str, Any]) -> Reply:
    """The inverse of `reply_to_json`.

    Raises:
        CodecError: a field is missing or of the wrong type.
    """
    return cast(Reply, _validate(Reply, data))


def _part_to_json(part: Part, store: Store) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.name != "data"}
    return {"type": "image", "image": store(part), **fields}


def _part_fields(part: object, load: Load) -> object:
    """The keyword arguments of `Text` or `Image`; the rest validation refuses."""
    if not isinstance(part, dict):
        return part
    fields = cast("dict[str, Any]", part)
    reference = fields.get("image")
    return {**fields, "data": load(reference)} if isinstance(reference, str) else fields


@cache
def _adapter(kind: type[Message | Reply]) -> TypeAdapter[Message | Reply]:
    return TypeAdapter(kind)


def _validate(kind: type[Message | Reply], data: object) -> Message | Reply:
    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "top level"
        raise CodecError(f"{kind.__name__.lower()}: {where}: {first['msg']}") from None
