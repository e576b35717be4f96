"""JSON of a chat completion → `Reply`, whatever shape servers give it.

Content may be a string, parts or null; reasoning comes as `reasoning_content` or `reasoning`; tool
arguments as a string, an object or null; `message`, `usage` and their members may be null or
missing. Nothing here raises on odd shapes: what cannot be read counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from agent.messages import Image, Reply, Request, ToolCall, Usage

_CHARS_PER_TOKEN = 4
_PIXELS_PER_TOKEN = 28 * 28
"""One patch of the usual vision encoders. Never by the length of the base64 text."""


def read_completion(body: Mapping[str, Any]) -> Reply | None:
    """The first choice of a completion; None when it has none (an error, or nonsense)."""
    choices: object = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    reply = read_choice(_object(cast("list[object]", choices)[0]))
    usage = _usage(_object(body.get("usage")))
    return replace(reply, usage=usage) if usage else reply


def read_choice(choice: Mapping[str, Any]) -> Reply:
    """A message with the `finish_reason` that stands beside it."""
    reply = read_message(_object(choice.get("message")))
    if not reply.text and isinstance(choice.get("text"), str):
        reply = replace(reply, text=choice["text"])
    return replace(reply, finish_reason=_string(choice.get("finish_reason")))


def read_message(message: Mapping[str, Any]) -> Reply:
    """A bare assistant message."""
    content: object = message.get("content")
    reasoning = _string(message.get("reasoning_content")) or _string(message.get("reasoning"))
    refusal = _string(message.get("refusal"))
    if isinstance(content, list):
        parts = [_object(part) for part in cast("list[object]", content)]
        reasoning = reasoning or _joined(parts, "thinking") or _joined(parts, "reasoning")
        refusal = refusal or _joined(parts, "refusal")
        content = _joined(parts, "text")
    return Reply(
        text=_string(content) or "",
        tool_calls=_calls(message),
        reasoning=reasoning or None,
        refusal=refusal or None,
    )


def estimated_usage(request: Request, reply: Reply) -> Usage:
    """For servers that send no usage: from characters and pixels, marked as an estimate."""
    chars, pixels = 0, 0
    for message in request.messages:
        chars += sum(len(call.arguments) for call in message.tool_calls)
        for part in message.parts:
            if isinstance(part, Image):
                pixels += part.width * part.height
            else:
                chars += len(part.text)
    said = len(reply.text) + len(reply.reasoning or "") + len(reply.refusal or "")
    said += sum(len(call.arguments) for call in reply.tool_calls)
    prompt = chars // _CHARS_PER_TOKEN + pixels // _PIXELS_PER_TOKEN
    return Usage(prompt, -(-said // _CHARS_PER_TOKEN), estimated=True)


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    found: object = message.get("tool_calls")
    calls = [_object(call) for call in cast("list[object]", found)] if _is_list(found) else []
    legacy = _object(message.get("function_call"))
    if legacy and not calls:
        calls = [{"function": legacy}]
    return tuple(_call(call, number) for number, call in enumerate(calls, start=1))


def _call(call: Mapping[str, Any], number: int) -> ToolCall:
    function = _object(call.get("function")) or call
    arguments: object = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments)
    call_id = _string(call.get("id")) or f"call_{number}"
    return ToolCall(call_id, _string(function.get("name")) or "", arguments)


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """None unless both counts are there: a missing one is unknown, not zero."""
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        return None
    prompt, completion = cast("list[int]", counts)
    return Usage(prompt, completion)


def _joined(parts: list[Mapping[str, Any]], kind: str) -> str:
    """The texts of all parts of one kind."""
    return "\n".join(
        text
        for part in parts
        if part.get("type", "text") in (kind, f"output_{kind}")
        and isinstance(text := part.get(kind, part.get("text")), str)
    )


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _is_list(value: object) -> bool:
    return isinstance(value, list)
