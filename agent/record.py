"""A `Result` as the JSON of its record file, and back.

Top-level fields that people filter by come first; the transcript holds messages as sent, every
picture by reference. `store` and `load` put picture bytes away and fetch them, as in `agent.codec`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from agent.codec import (
    CodecError,
    Load,
    message_from_json,
    message_to_json,
    reply_from_json,
    reply_to_json,
)
from agent.messages import Action, Answer, Image, Malformed, Run
from agent.trajectory import Failure, Result, Trajectory, Turn
from benchmarks.sample import Score
from sandbox.outputs import Display, Error, Execution, Output, Stream

VERSION = 1

StoreBytes = Callable[[bytes, str], str]
"""Bytes and MIME type in, reference out."""

_ACTIONS = {"run": Run, "answer": Answer, "malformed": Malformed}
_OUTPUTS = {"stream": Stream, "display": Display, "error": Error}
_PLAIN = ("id", "repeat", "task", "group", "difficulty", "target", "seconds", "seed")


def outcome(result: Result) -> str:
    """`correct`, `wrong`, `no_span`, `unparsed`, `unscored`; `failed` for infrastructure."""
    return result.score.outcome if result.score else "failed"


def result_to_json(result: Result, store: StoreBytes) -> dict[str, Any]:
    """The record: a flat head (`id … target`), then `prompt` and `turns`."""
    trajectory = result.trajectory
    head = {name: getattr(result, name) for name in _PLAIN}
    return {
        "version": VERSION,
        **head,
        "outcome": outcome(result),
        "score": dataclasses.asdict(result.score) if result.score else None,
        "stop": trajectory.stop if trajectory else None,
        "failure": dataclasses.asdict(result.failure) if result.failure else None,
        "answer": trajectory.answer if trajectory else None,
        "completion_tokens": trajectory.completion_tokens if trajectory else 0,
        "choices": list(result.choices),
        "meta": dict(result.meta),
        **(_trajectory_to_json(trajectory, store) if trajectory else {}),
    }


def result_from_json(data: Mapping[str, Any], load: Load) -> Result:
    """The inverse of `result_to_json`.

    Raises:
        CodecError: another version, a missing field or a wrong type.
    """
    if data.get("version") != VERSION:
        raise CodecError(f"record: expected version {VERSION}, found {data.get('version')!r}")
    head = {name: data[name] for name in _PLAIN if name in data}
    return cast(
        Result,
        _validate(
            Result,
            {
                **head,
                "choices": data.get("choices", ()),
                "meta": data.get("meta", {}),
                "trajectory": _trajectory_from_json(data, load) if data.get("stop") else None,
                "score": _optional(Score, data.get("score")),
                "failure": _optional(Failure, data.get("failure")),
            },
        ),
    )


def _trajectory_to_json(trajectory: Trajectory, store: StoreBytes) -> dict[str, Any]:
    def store_image(image: Image) -> str:
        return store(image.data, image.mime)

    return {
        "prompt": [message_to_json(message, store_image) for message in trajectory.prompt],
        "turns": [
            {
                "reply": reply_to_json(turn.reply),
                "actions": [_tagged(action) for action in turn.actions],
                "executions": [_execution_to_json(e, store) for e in turn.executions],
                "sent": [message_to_json(message, store_image) for message in turn.sent],
            }
            for turn in trajectory.turns
        ],
    }


def _trajectory_from_json(data: Mapping[str, Any], load: Load) -> Trajectory:
    fields = {
        "prompt": tuple(message_from_json(m, load) for m in _items(data, "prompt")),
        "turns": tuple(_turn_from_json(turn, load) for turn in _items(data, "turns")),
        "stop": data["stop"],
        "answer": data.get("answer"),
    }
    return cast(Trajectory, _validate(Trajectory, fields))


def _turn_from_json(data: Mapping[str, Any], load: Load) -> Turn:
    reply = data.get("reply")
    if not isinstance(reply, dict):
        raise CodecError("turn: expected an object under `reply`")
    return Turn(
        reply=reply_from_json(cast("dict[str, Any]", reply)),
        actions=cast("tuple[Action, ...]", _untagged_all(data, "actions", _ACTIONS)),
        executions=tuple(_execution_from_json(e, load) for e in _items(data, "executions")),
        sent=tuple(message_from_json(m, load) for m in _items(data, "sent")),
    )


def _execution_to_json(execution: Execution, store: StoreBytes) -> dict[str, Any]:
    fields = {
        f.name: getattr(execution, f.name)
        for f in dataclasses.fields(execution)
        if f.name not in ("outputs", "files", "dropped")
    }
    return {
        **fields,
        "outputs": [_output_to_json(output, store) for output in execution.outputs],
        "files": [dataclasses.asdict(file) for file in execution.files],
        "dropped": dataclasses.asdict(execution.dropped),
    }


def _output_to_json(output: Output, store: StoreBytes) -> dict[str, Any]:
    if not isinstance(output, Display):
        return _tagged(output)
    if not output.is_picture:
        return {"type": "display", "mime": output.mime, "text": output.text}
    size = {"width": output.width, "height": output.height}
    return {
        "type": "display",
        "mime": output.mime,
        "image": store(output.data, output.mime),
        **size,
    }


def _execution_from_json(data: Mapping[str, Any], load: Load) -> Execution:
    outputs: list[object] = []
    for item in _items(data, "outputs"):
        if "image" in item:
            item = {**item, "data": load(str(item["image"]))}
        elif item.get("type") == "display":
            item = {**item, "data": str(item.get("text", "")).encode()}
        outputs.append(_untagged(item, _OUTPUTS))
    return cast(Execution, _validate(Execution, {**data, "outputs": tuple(outputs)}))


def _tagged(value: Action | Output) -> dict[str, Any]:
    return {"type": type(value).__name__.lower(), **dataclasses.asdict(value)}


def _untagged(item: Mapping[str, Any], kinds: Mapping[str, type]) -> object:
    kind = kinds.get(str(item.get("type")))
    if kind is None:
        raise CodecError(f"type: expected one of {', '.join(kinds)}, found {item.get('type')!r}")
    return _validate(kind, item)


def _untagged_all(
    data: Mapping[str, Any], name: str, kinds: Mapping[str, type]
) -> tuple[object, ...]:
    return tuple(_untagged(item, kinds) for item in _items(data, name))


def _items(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = data.get(name)
    items = cast("list[object]", found) if isinstance(found, list) else None
    if items is None or not all(isinstance(item, dict) for item in items):
        raise CodecError(f"record: expected a list of objects under `{name}`")
    return cast("list[Mapping[str, Any]]", items)


def _optional(kind: type, data: object) -> object:
    return None if data is None else _validate(kind, data)


@cache
def _adapter(kind: type) -> Any:
    return TypeAdapter(kind)


def _validate(kind: type, data: object) -> object:
    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "top level"
        raise CodecError(f"{kind.__name__.lower()}: {where}: {first['msg']}") from None
