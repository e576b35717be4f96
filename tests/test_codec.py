"""Messages and replies survive the way to JSON and back; the rest is refused in one line."""

from __future__ import annotations

import json

import pytest

from agent.codec import (
    CodecError,
    image_reference,
    message_from_json,
    message_to_json,
    reply_from_json,
    reply_to_json,
)
from agent.messages import Image, Message, Reply, Text, ToolCall, Usage

PICTURE = Image(
    data=b"\x89PNG-bytes",
    mime="image/png",
    width=480,
    height=240,
    name="image_1.png",
    origin="prompt",
    original_width=960,
    original_height=480,
)
CALL = ToolCall("call-1", "python", '{"code": "print(1)"}')


@pytest.mark.parametrize(
    "message",
    [
        Message("system", (Text("be brief"),)),
        Message("user", (Text("look"), PICTURE, Text("end 😀"))),
        Message("assistant", (), tool_calls=(CALL,)),
        Message("tool", (Text("1"), PICTURE), tool_call_id="call-1"),
    ],
)
def test_message_round_trip(message: Message) -> None:
    shelf: dict[str, bytes] = {}

    def store(image: Image) -> str:
        shelf[image_reference(image)] = image.data
        return image_reference(image)

    wire = json.dumps(message_to_json(message, store))
    assert "PNG-bytes" not in wire
    assert message_from_json(json.loads(wire), shelf.__getitem__) == message
    assert len(shelf) == sum(isinstance(part, Image) for part in message.parts)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(""),
        Reply(
            "text",
            tool_calls=(CALL, CALL),
            reasoning="because",
            refusal="no",
            finish_reason="tool_calls",
            usage=Usage(10, 20, estimated=True),
            seconds=1.25,
            cached=True,
        ),
    ],
)
def test_reply_round_trip(reply: Reply) -> None:
    assert reply_from_json(json.loads(json.dumps(reply_to_json(reply)))) == reply


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({}, "parts"),
        ({"role": "user", "parts": [{"type": "image"}]}, "parts.0"),
        ({"role": "judge", "parts": []}, "role"),
        ({"role": "user", "parts": ["x"]}, "parts.0"),
    ],
)
def test_bad_message_is_refused(data: dict[str, object], where: str) -> None:
    with pytest.raises(CodecError, match=where) as caught:
        message_from_json(data, lambda name: b"")
    assert "\n" not in str(caught.value)


def test_bad_reply_is_refused() -> None:
    with pytest.raises(CodecError, match="text"):
        reply_from_json({"finish_reason": "stop"})
