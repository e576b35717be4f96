"""A request as the JSON body of `/chat/completions`: pure, and exactly what is sent and cached.

Texts without pictures go as plain strings, which every server takes; pictures as data URLs in
standard base64 without line breaks.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from agent.messages import Image, Message, Part, Request
from agent.models.options import RequestOptions


def data_url(image: Image) -> str:
    """`data:image/png;base64,…`"""
    return f"data:{image.mime};base64,{base64.b64encode(image.data).decode('ascii')}"


def to_wire(
    request: Request,
    model: str,
    options: RequestOptions,
    picture: Callable[[Image], str] = data_url,
) -> dict[str, Any]:
    """The body. Keys that nobody set are absent; `extra_body` wins over all.

    `picture` gives the URL of each picture: the data itself, or a short name for it in a log.
    """
    max_tokens = request.max_tokens if request.max_tokens is not None else options.max_tokens
    seed = None if options.seed is None else options.seed + request.repeat
    optional = {
        "tools": [dict(tool) for tool in request.tools] or None,
        "stop": list(request.stop) or None,
        "max_tokens": max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": seed,
    }
    return {
        "model": model,
        "messages": [_message(message, picture) for message in request.messages],
        **{name: value for name, value in optional.items() if value is not None},
        **options.extra_body,
    }


def _message(message: Message, picture: Callable[[Image], str]) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": _content(message, picture)}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _content(
    message: Message, picture: Callable[[Image], str]
) -> str | list[dict[str, Any]] | None:
    if any(isinstance(part, Image) for part in message.parts):
        return [_part(part, picture) for part in message.parts]
    return None if message.tool_calls and not message.parts else message.text


def _part(part: Part, picture: Callable[[Image], str]) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": picture(part)}}
    return {"type": "text", "text": part.text}
