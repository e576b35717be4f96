"""Completions in every shape that servers send, and requests as they are sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import dialects
from agent.messages import Image, Message, Reply, Request, Text, ToolCall, Usage
from agent.models.completion import estimated_usage, read_completion, read_message
from agent.models.options import RequestOptions
from agent.models.wire import to_wire

CALL = {"id": "c1", "type": "function", "function": {"name": "python", "arguments": "{}"}}
PICTURE = Image(b"\x00\xff\xfe bytes", "image/png", 480, 240, "image_1.png", "prompt", 960, 480)


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ({"content": "hi"}, Reply("hi")),
        ({"content": None}, Reply("")),
        ({}, Reply("")),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            Reply("a\nb"),
        ),
        ({"content": [{"type": "output_text", "text": "a"}]}, Reply("a")),
        (
            {"content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]},
            Reply("a", reasoning="t"),
        ),
        ({"content": [{"type": "refusal", "refusal": "no"}]}, Reply("", refusal="no")),
        ({"content": "a", "reasoning_content": "t"}, Reply("a", reasoning="t")),
        ({"content": "a", "reasoning": "t"}, Reply("a", reasoning="t")),
        ({"content": "a", "reasoning": {"effort": "x"}}, Reply("a")),
        ({"content": "a", "reasoning_content": None, "reasoning": ""}, Reply("a")),
        ({"content": None, "refusal": "I can't"}, Reply("", refusal="I can't")),
        ({"tool_calls": [CALL]}, Reply("", (ToolCall("c1", "python", "{}"),))),
        (
            {"tool_calls": [{"function": {"name": "python", "arguments": {"code": "x"}}}]},
            Reply("", (ToolCall("call_1", "python", '{"code": "x"}'),)),
        ),
        (
            {"tool_calls": [{"id": "a", "function": {"name": "python", "arguments": None}}]},
            Reply("", (ToolCall("a", "python", ""),)),
        ),
        ({"tool_calls": None}, Reply("")),
        (
            {"tool_calls": ["x", None]},
            Reply("", (ToolCall("call_1", "", ""), ToolCall("call_2", "", ""))),
        ),
        (
            {"tool_calls": [CALL], "function_call": {"name": "python", "arguments": "[]"}},
            Reply("", (ToolCall("c1", "python", "{}"),)),
        ),
        (
            {"function_call": {"name": "python", "arguments": "{}"}},
            Reply("", (ToolCall("call_1", "python", "{}"),)),
        ),
    ],
)
def test_messages(message: dict[str, Any], reply: Reply) -> None:
    assert read_message(message) == reply


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (
            {"choices": [{"finish_reason": "stop", "message": {"content": "a"}}], "usage": None},
            Reply("a", finish_reason="stop"),
        ),
        ({"choices": [{"finish_reason": None, "message": {"content": "a"}}]}, Reply("a")),
        (
            {"choices": [{"finish_reason": "content_filter", "message": None}]},
            Reply("", finish_reason="content_filter"),
        ),
        ({"choices": [{"text": "old"}]}, Reply("old")),
        ({"choices": [{"text": "old", "message": {"content": "new"}}]}, Reply("new")),
        ({"choices": []}, None),
        ({"choices": None, "error": {"message": "x"}}, None),
        ({}, None),
        (
            {
                "choices": [{"message": {"content": "a"}}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
            },
            Reply("a", usage=Usage(5, 7)),
        ),
        (
            {
                "choices": [{"message": {"content": "a"}}],
                "usage": {"prompt_tokens": None, "completion_tokens": 7},
            },
            Reply("a"),
        ),
    ],
)
def test_completions(body: dict[str, Any], reply: Reply | None) -> None:
    assert read_completion(body) == reply


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "tool_calls", "usage", "function", "type"]
            )
            | st.text(),
            inner,
        )
    ),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["choices", "usage", "error"]), JSON))
def test_nothing_raises(body: dict[str, Any]) -> None:
    reply = read_completion(body)
    assert reply is None or isinstance(reply.text, str)


def test_estimate_counts_pixels_not_base64() -> None:
    image = Image(b"\xff" * 1_048_576, "image/png", 1024, 1024, "i", "prompt", 1024, 1024)
    usage = estimated_usage(Request((Message("user", (Text("x" * 3000), image)),)), Reply("y" * 41))
    assert 1000 < usage.prompt_tokens < 3000
    assert usage.completion_tokens == 11
    assert usage.estimated


def test_the_body_that_is_sent() -> None:
    request = Request(
        (
            Message("system", (Text("be exact"),)),
            Message("user", (Text("what?"), PICTURE)),
            Message("assistant", (), (ToolCall("c1", "python", '{"code": "1"}'),)),
            Message("tool", (Text("1"), Text("2")), tool_call_id="c1"),
        ),
        tools=({"type": "function"},),
        stop=("</code>",),
        repeat=2,
        sample_id="secret/id",
    )
    options = RequestOptions(temperature=0.5, seed=40, max_tokens=9, extra_body={"top_k": 3})
    body = to_wire(request, "m", options)
    url = body["messages"][1]["content"][1]["image_url"]["url"]
    head, data = url.split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data, validate=True) == PICTURE.data
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be exact"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "what?"},
                    {"type": "image_url", "image_url": {"url": url}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "python", "arguments": '{"code": "1"}'},
                    }
                ],
            },
            {"role": "tool", "content": "1\n2", "tool_call_id": "c1"},
        ],
        "tools": [{"type": "function"}],
        "stop": ["</code>"],
        "max_tokens": 9,
        "temperature": 0.5,
        "seed": 42,
        "top_k": 3,
    }
    assert "secret/id" not in json.dumps(body)


def test_what_nobody_set_is_not_sent() -> None:
    body = to_wire(Request((Message("user", (Text("hi"),)),)), "m", RequestOptions())
    assert body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_extra_body_wins_and_the_request_bounds_the_tokens() -> None:
    request = Request((Message("user", (Text("hi"),)),), max_tokens=3)
    options = RequestOptions(temperature=1.0, max_tokens=99, extra_body={"temperature": 0.1})
    body = to_wire(request, "m", options)
    assert (body["temperature"], body["max_tokens"]) == (0.1, 3)


# --- what the model wrote never makes a server refuse the rest of the conversation


@pytest.mark.parametrize(
    "text",
    ["<|image_pad|>", "<image>", "<|vision_start|>", "<start_of_image>", "[IMG]", "<|VIDEO_PAD|>"],
)
def test_what_stands_for_a_picture_is_broken_up_in_what_the_model_wrote(text: str) -> None:
    call = ToolCall("a", "python", json.dumps({"code": f"print({text!r})"}))
    request = Request(
        (
            Message("user", (Text(text),)),
            Message("assistant", (Text(text),), tool_calls=(call,)),
            Message("tool", (Text(text),), tool_call_id="a"),
            Message("user", (Text(text), PICTURE)),
        )
    )
    body = to_wire(request, "m", RequestOptions())
    first, *later = body["messages"]
    assert first["content"] == text  # the question is the benchmark's own
    assert text not in json.dumps(later)
    assert json.dumps(later).count(f"{text[0]} {text[1:]}") == 4


@pytest.mark.parametrize(
    "text", ["a < b > c", "<b>", "[1]", "<|im_end|>", "x[IMG0]", "<imaginary "]
)
def test_other_text_is_sent_as_it_is(text: str) -> None:
    said = Message("assistant", (Text(text),))
    body = to_wire(Request((said,)), "m", RequestOptions())
    assert body["messages"][0]["content"] == text


def test_lone_surrogates_and_odd_names_are_sent_as_what_can_be_encoded() -> None:
    odd = "\ud800x"
    call = ToolCall(odd, f"py thon.{odd}" + "y" * 90, odd)
    said = Message("assistant", (Text(odd),), tool_calls=(call,))
    heard = Message("tool", (Text(odd),), tool_call_id=odd)
    body = to_wire(Request((said, heard)), "m", RequestOptions())
    json.dumps(body, ensure_ascii=False).encode("utf-8")
    (sent,) = body["messages"][0]["tool_calls"]
    assert sent["id"] == body["messages"][1]["tool_call_id"] == "?x"
    assert sent["function"]["name"] == ("py_thon__x" + "y" * 90)[:64]
    unnamed = Message("assistant", (), tool_calls=(ToolCall("a", "", "{}"),))
    body = to_wire(Request((unnamed,)), "m", RequestOptions())
    assert body["messages"][0]["tool_calls"][0]["function"]["name"] == "_"


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"code": "a()"}', None),
        (' {"x": [1]} ', None),
        ('{"code": "print(1)', {"unreadable": '{"code": "print(1)'}),
        ("", {"unreadable": ""}),
        ('"a()"', {"code": "a()"}),
        ("[1]", {"unreadable": "[1]"}),
        ('{"code": "a()\nb()"}', {"code": "a()\nb()"}),
        ("{'code': 'a()'}", {"code": "a()"}),
        ("import os\nprint(os.name)", {"code": "import os\nprint(os.name)"}),
        ('{"\\ud800": 1}', {"unreadable": '{"\\ud800": 1}'}),
        ("[" * 100_000, {"unreadable": "[" * 100_000}),
    ],
)
def test_arguments_go_back_as_an_object(arguments: str, sent: dict[str, Any] | None) -> None:
    reply = Reply("", (ToolCall("a", "python", arguments),))
    message = dialects.get("tools").assistant(reply)
    (call,) = message.tool_calls
    assert call.id == "a"
    if sent is None:
        assert call.arguments == arguments
    else:
        assert json.loads(call.arguments) == sent
