"""A saved reply of any shape → what is read from it; for debugging transcripts (`pot parse`).

A JSON object with one of a message's keys is a message: bare, wrapped with its `finish_reason`, or
a whole completion. A JSON list gives one result an element. All else is the text of a reply.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from agent import dialects, loose_json
from agent.dialects import auto
from agent.dialects.reading import thinking
from agent.messages import Answer, Malformed, Reply, Run
from agent.models.completion import read_choice, read_completion, read_message

_KEYS = frozenset({"role", "content", "tool_calls", "message", "choices"})


def replies(source: str) -> tuple[Reply, ...]:
    """The replies in the contents of a file."""
    try:
        value = loose_json.parse(source)
    except ValueError:
        return (Reply(source),)
    if isinstance(value, list):
        return tuple(_reply(element) for element in cast("list[object]", value))
    return (_reply(value) if _is_message(value) else Reply(source),)


def describe(reply: Reply, dialect: str = "auto") -> dict[str, Any]:
    """`{"code": [...], "answer", "malformed", "reasoning"}`; `malformed` only when there is neither
    code nor answer."""
    actions = auto.read(reply) if dialect == "auto" else dialects.get(dialect).read(reply)
    code = [action.code for action in actions if isinstance(action, Run)]
    answer = next((action.text for action in actions if isinstance(action, Answer)), None)
    hints = [action.hint for action in actions if isinstance(action, Malformed)]
    if reply.refusal:
        hints = [f"The model refused: {reply.refusal}"]
    return {
        "code": code,
        "answer": answer,
        "malformed": " ".join(hints) if not code and answer is None else None,
        "reasoning": thinking(reply),
    }


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and not _KEYS.isdisjoint(cast("dict[str, Any]", value))


def _reply(value: object) -> Reply:
    if not _is_message(value):
        return Reply(value if isinstance(value, str) else loose_json.dump(value))
    fields = cast("dict[str, Any]", value)
    if "choices" in fields:
        return read_completion(fields) or Reply("")
    if "message" in fields:
        return read_choice(fields)
    finish_reason: object = fields.get("finish_reason")
    reply = read_message(fields)
    return replace(reply, finish_reason=finish_reason if isinstance(finish_reason, str) else None)
