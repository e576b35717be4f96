"""A request as the JSON body of `/chat/completions`: pure, and exactly what is sent and cached.

Texts without pictures go as plain strings, which every server takes; pictures as data URLs in
standard base64 without line breaks. What the model or its programs wrote is made such that a server
takes it: no reply may end its own sample as a refused request.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from agent.messages import Image, Message, Part, Request
from agent.models.options import RequestOptions

_PLACEHOLDER = re.compile(
    r"<\|?(?:image|img|video|audio|vision|media)\w{0,40}\|?>"
    r"|<(?:start|end)_of_(?:image|audio)>|\[IMG(?:_BREAK|_END)?\]",
    re.IGNORECASE,
)
"""What stands for a picture in the chat templates of open models. Servers count them in all text
and refuse a request that has more than pictures."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


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
    said = next((n for n, m in enumerate(request.messages) if m.role == "assistant"), None)
    return {
        "model": model,
        "messages": [
            _message(message, picture, quoted=said is not None and place >= said)
            for place, message in enumerate(request.messages)
        ],
        **{name: value for name, value in optional.items() if value is not None},
        **options.extra_body,
    }


def _message(message: Message, picture: Callable[[Image], str], *, quoted: bool) -> dict[str, Any]:
    """`quoted`: from the model's first reply on, texts are the model's and its programs'."""
    wire: dict[str, Any] = {
        "role": message.role,
        "content": _content(message, picture, _quoted if quoted else _encodable),
    }
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": _encodable(call.id),
                "type": "function",
                "function": {
                    "name": _NOT_IN_NAMES.sub("_", call.name)[:_LONGEST_NAME] or "_",
                    "arguments": _quoted(call.arguments),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = _encodable(message.tool_call_id)
    return wire


def _content(
    message: Message, picture: Callable[[Image], str], clean: Callable[[str], str]
) -> str | list[dict[str, Any]] | None:
    if any(isinstance(part, Image) for part in message.parts):
        return [_part(part, picture, clean) for part in message.parts]
    return None if message.tool_calls and not message.parts else clean(message.text)


def _part(
    part: Part, picture: Callable[[Image], str], clean: Callable[[str], str]
) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": picture(part)}}
    return {"type": "text", "text": clean(part.text)}


def _encodable(text: str) -> str:
    """Lone surrogates, which JSON allows and UTF-8 does not, become `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _quoted(text: str) -> str:
    """Encodable, and what would stand for a picture broken up by a space."""
    return _PLACEHOLDER.sub(lambda found: f"{found[0][0]} {found[0][1:]}", _encodable(text))
