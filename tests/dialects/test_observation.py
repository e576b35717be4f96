"""How results go back: every call answered, pictures where servers see them, roles in turn."""

from __future__ import annotations

import pytest

from agent import dialects
from agent.messages import Answer, Image, Malformed, Message, Part, Reply, Run, Text, ToolCall


def picture(name: str) -> Image:
    return Image(b"png", "image/png", 10, 20, name, "box", 10, 20)


FIRST, SECOND = picture("output_1_1.png"), picture("output_1_2.png")


def test_tools_answer_each_call_and_show_pictures_after_them() -> None:
    messages = dialects.get("tools").observation(
        (
            (Run("a()", "a"), (Text("[picture output_1_1.png: 10×20 px]"), FIRST, Text("done"))),
            (Malformed("no function `x`", "b"), ()),
            (Run("c()", "c"), (SECOND,)),
            (Answer("1"), ()),
        )
    )
    assert [(m.role, m.tool_call_id) for m in messages] == [
        ("tool", "a"),
        ("tool", "b"),
        ("tool", "c"),
        ("user", None),
    ]
    assert messages[0].text.splitlines() == [
        "[picture output_1_1.png: 10×20 px]",
        "done",
        "[shown in the next message: output_1_1.png]",
    ]
    assert messages[1].text == "no function `x`"
    assert not any(isinstance(part, Image) for m in messages[:3] for part in m.parts)
    assert messages[3].parts == (
        Text("output_1_1.png:"),
        FIRST,
        Text("output_1_2.png:"),
        SECOND,
    )


def test_tools_without_pictures_need_no_user_message() -> None:
    messages = dialects.get("tools").observation(((Run("a()", "a"), ()),))
    assert messages == (Message("tool", (Text("(no output)"),), tool_call_id="a"),)


def test_the_function_that_is_offered() -> None:
    (tool,) = dialects.get("tools").tools
    function = tool["function"]
    assert (tool["type"], function["name"]) == ("function", "python")
    assert "Jupyter" in function["description"]
    parameters = function["parameters"]
    assert parameters["type"] == "object"
    assert parameters["properties"]["code"]["type"] == "string"
    assert (parameters["required"], parameters["additionalProperties"]) == (["code"], False)
    assert [dialects.get(name).name for name in dialects.NAMES] == ["tools", "fenced", "tags"]
    assert [dialects.get(name).stop for name in dialects.NAMES] == [(), (), ("</code>",)]
    assert not dialects.get("fenced").tools
    assert not dialects.get("tags").tools


def test_tools_answer_what_belongs_to_no_call_in_a_user_message() -> None:
    tools = dialects.get("tools")
    told = tools.observation(((Malformed("hint", "a"), (Text("told"),)),))
    assert told == (Message("tool", (Text("told"),), tool_call_id="a"),)
    assert tools.observation(((Malformed("say more"), ()),)) == (
        Message("user", (Text("say more"),)),
    )
    (message,) = tools.observation(((Run("a()"), (Text("1"), FIRST)),))
    assert message == Message("user", (Text("1"), FIRST))


@pytest.mark.parametrize("name", ["fenced", "tags"])
def test_text_dialects_answer_in_one_user_message(name: str) -> None:
    dialect = dialects.get(name)
    parts: tuple[Part, ...] = (Text("1"), FIRST)
    (one,) = dialect.observation(((Run("a()"), parts), (Answer("1"), ())))
    assert one == Message("user", (Text("Output:"), Text("1"), FIRST))
    (two,) = dialect.observation(((Run("a()"), parts), (Run("b()"), ())))
    assert [part.text for part in two.parts if isinstance(part, Text)] == [
        "Output of block 1:",
        "1",
        "Output of block 2:",
        "(no output)",
    ]
    assert dialect.observation(((Malformed("hint"), ()),)) == (Message("user", (Text("hint"),)),)
    told = dialect.observation(((Malformed("hint"), (Text("told"),)),))
    assert told == (Message("user", (Text("told"),)),)
    assert dialect.observation(((Answer("1"), ()),)) == ()


def test_the_reply_in_the_history() -> None:
    calls = (ToolCall("a", "python", '{"code": "x"}'),)
    assert dialects.get("tools").assistant(Reply("t", calls)) == Message(
        "assistant", (Text("t"),), calls
    )
    assert dialects.get("tools").assistant(Reply("", calls)) == Message("assistant", (), calls)
    for name in dialects.NAMES:
        empty = dialects.get(name).assistant(Reply(""))
        assert empty == Message("assistant", (Text("(empty reply)"),))
        assert dialects.get(name).assistant(Reply("", refusal="no")).text == "no"


@pytest.mark.parametrize("name", ["fenced", "tags"])
def test_calls_that_nobody_offered_stand_beside_an_answer(name: str) -> None:
    calls = (ToolCall("a", "python", '{"code": "print(1)"}'), ToolCall("b", "zoom", "{}"))
    reply = Reply("<answer>5</answer>", calls)
    assert dialects.get(name).read(reply) == (Run("print(1)"), Answer("5"))
    (hint,) = dialects.get(name).read(Reply("so", calls[1:]))
    assert isinstance(hint, Malformed)
    assert "no function `zoom`" in hint.hint
    silent = dialects.get(name).assistant(Reply("", calls[1:]))
    assert silent == Message("assistant", (Text("(empty reply)"),))


def test_calls_that_nobody_offered_stand_in_the_history_as_code() -> None:
    fenced = dialects.get("fenced")
    reply = Reply("look", (ToolCall("a", "python", '{"code": "print(1)"}'),))
    assert fenced.read(reply) == (Run("print(1)"),)
    assert fenced.assistant(reply).text == "look\n```python\nprint(1)\n```"
    assert not fenced.assistant(reply).tool_calls
    tags = dialects.get("tags")
    assert tags.read(reply) == (Run("print(1)"),)
    assert tags.assistant(reply) == Message("assistant", (Text("look\n<code>\nprint(1)\n</code>"),))
    written = Reply("<code>a()", reply.tool_calls, finish_reason="stop")
    assert tags.read(written) == (Run("a()"),)
    assert tags.assistant(written).text == "<code>a()</code>"


@pytest.mark.parametrize(
    ("text", "finish_reason", "kept"),
    [
        ("<code>a()", "stop", "<code>a()</code>"),
        ("<code>a()</code>", "stop", "<code>a()</code>"),
        ("<code>a()", "length", "<code>a()"),
        ("no code", "stop", "no code"),
    ],
)
def test_the_stop_string_is_put_back(text: str, finish_reason: str, kept: str) -> None:
    assert dialects.get("tags").assistant(Reply(text, finish_reason=finish_reason)).text == kept


def test_instructions_name_the_way_that_is_read() -> None:
    assert "`python`" in dialects.get("tools").instructions
    assert "```python" in dialects.get("fenced").instructions
    assert "<code>" in dialects.get("tags").instructions
    with pytest.raises(KeyError):
        dialects.get("xml")
