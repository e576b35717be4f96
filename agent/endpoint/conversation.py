"""A request body as a server sees it → our messages, and a `Reply` → the body of a completion."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping
from typing import Any, Literal, cast

from agent.messages import Message, Reply, Request, Text, ToolCall
from agent.models.completion import estimated_usage
from agent.models.scripted import Style

_ROLES = ("system", "user", "assistant", "tool")


def messages(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """The conversation without its pictures.

    Raises:
        ValueError: `messages` is not what the API takes; one line for the client.
    """
    found: object = body.get("messages")
    if not isinstance(found, list) or not found:
        raise ValueError("'messages' must be a list of at least one message")
    try:
        return tuple(_message(message) for message in cast("list[object]", found))
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"a message has not the form of the API: {problem!r}") from None


def pictures(body: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The pictures of the first user message, decoded from their data URLs.

    Raises:
        ValueError: a URL is not a data URL in base64.
    """
    for message in cast("list[dict[str, Any]]", body["messages"]):
        if message.get("role") == "user":
            content: object = message.get("content")
            parts = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
            return tuple(_decoded(part) for part in parts if "image_url" in part)
    return ()


def count_pictures(body: Mapping[str, Any]) -> int:
    """All pictures of a request, whatever their form."""
    found: object = body.get("messages")
    every = cast("list[object]", found) if isinstance(found, list) else []
    contents = [cast("dict[str, Any]", m).get("content") for m in every if isinstance(m, dict)]
    lists = [cast("list[object]", content) for content in contents if isinstance(content, list)]
    return sum(isinstance(part, dict) and "image_url" in part for parts in lists for part in parts)


def turn(body: Mapping[str, Any]) -> int:
    """Which reply is asked for, counted from 1."""
    found: object = body.get("messages")
    every = cast("list[object]", found) if isinstance(found, list) else []
    roles = [cast("dict[str, Any]", m).get("role") for m in every if isinstance(m, dict)]
    return 1 + roles.count("assistant")


def style(body: Mapping[str, Any], wanted: Style | Literal["auto"]) -> Style:
    """How code is to be written: as told, else as the request can be read to want it."""
    if wanted != "auto":
        return wanted
    if body.get("tools"):
        return "tools"
    return "tags" if "</code>" in (body.get("stop") or ()) else "fenced"


def completion(
    reply: Reply, conversation: tuple[Message, ...], model: str, number: int
) -> dict[str, Any]:
    """The JSON of `POST /chat/completions`."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if reply.refusal is not None:
        message["refusal"] = reply.refusal
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.tool_calls
        ]
    usage = estimated_usage(Request(conversation), reply)
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
    }


def _message(value: object) -> Message:
    message = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    role: object = message.get("role")
    if role not in _ROLES:
        raise ValueError(f"each message needs a role of {', '.join(_ROLES)}, found {role!r}")
    calls = cast("list[dict[str, Any]]", message.get("tool_calls") or [])
    return Message(
        role,
        tuple(Text(text) for text in _texts(message.get("content"))),
        tuple(_call(call) for call in calls),
        cast("str | None", message.get("tool_call_id")),
    )


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    return [str(part["text"]) for part in parts if part.get("type") == "text"]


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    return ToolCall(str(call["id"]), str(function["name"]), str(function["arguments"]))


def _decoded(part: Mapping[str, Any]) -> bytes:
    url = str(cast("dict[str, Any]", part["image_url"]).get("url"))
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:image/") or not head.endswith(";base64"):
        raise ValueError(f"Invalid 'image_url': expected a data URL, found {url[:40]!r}")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise ValueError("Invalid 'image_url': the data is not base64") from None
