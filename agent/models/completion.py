"""JSON of a chat completion → `Reply`, whatever shape servers give it.

Content may be a string, parts or null; reasoning comes as `reasoning_content`, `reasoning`,
`reasoning_details` or parts; calls as `tool_calls`, the old `function_call` or `tool_use` parts,
with arguments as a string, an object or null; `message`, `usage` and their members may be null or
missing. Nothing here raises on odd shapes: what cannot be read counts as absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from agent import loose_json
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
    message: object = choice.get("message")
    reply = read_message({"content": message} if isinstance(message, str) else _object(message))
    if not reply.text and isinstance(choice.get("text"), str):
        reply = replace(reply, text=choice["text"])
    return replace(reply, finish_reason=_string(choice.get("finish_reason")))


def read_message(message: Mapping[str, Any]) -> Reply:
    """A bare assistant message."""
    content: object = message.get("content")
    parts = [_part(part) for part in _list(content)]
    reasoning = (
        _words(message.get("reasoning_content"))
        or _words(message.get("reasoning"))
        or _joined(parts, "thinking")
        or _joined(parts, "reasoning")
        or _words(message.get("reasoning_details"))
    )
    refusal = _string(message.get("refusal")) or _joined(parts, "refusal")
    return Reply(
        text=content if isinstance(content, str) else _joined(parts, "text"),
        tool_calls=_calls(message, parts),
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


def _calls(message: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    found: object = message.get("tool_calls")
    calls = [_object(call) for call in _list(_opened(found))]
    calls = calls or [part for part in parts if part.get("type") == "tool_use"]
    legacy = _object(message.get("function_call"))
    if legacy and not calls:
        calls = [{"function": legacy}]
    return tuple(_call(call, number) for number, call in enumerate(calls, start=1))


def _call(call: Mapping[str, Any], number: int) -> ToolCall:
    function = _object(call.get("function")) or _object(call.get("custom")) or call
    given = (function.get(key) for key in ("arguments", "parameters", "input"))
    arguments: object = next((each for each in given if each is not None), "")
    if not isinstance(arguments, str):
        arguments = loose_json.dump(arguments)
    call_id = _string(call.get("id")) or f"call_{number}"
    return ToolCall(call_id, _string(function.get("name")) or "", arguments)


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """None unless both counts are there: a missing one is unknown, not zero."""
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        return None
    prompt, completion = cast("list[int]", counts)
    return Usage(prompt, completion)


def _joined(parts: Sequence[Mapping[str, Any]], kind: str) -> str:
    """The texts of all parts of one kind."""
    chosen = [part for part in parts if part.get("type", "text") in (kind, f"output_{kind}")]
    texts = [_words(part.get(kind, part.get("text"))) for part in chosen]
    return "\n".join(text for text in texts if text is not None)


def _words(value: object) -> str | None:
    """A text, or the texts in a list of parts or in one; None where there are none."""
    if isinstance(value, str):
        return value
    texts = [_string(_part(part).get("text")) for part in _list(value)]
    return "\n".join(text for text in texts if text is not None) if any(texts) else None


def _part(value: object) -> Mapping[str, Any]:
    return {"text": value} if isinstance(value, str) else _object(value)


def _opened(value: object) -> object:
    """Calls that were encoded once more."""
    return loose_json.load(value)[0] if isinstance(value, str) else value


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    """A list as it is, an object as a list of one, nothing else."""
    if isinstance(value, dict):
        return [cast("object", value)]
    return cast("list[object]", value) if isinstance(value, list) else []


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
