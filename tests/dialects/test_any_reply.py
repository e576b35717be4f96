"""No reply makes the reader raise or take long, whatever it is made of; and what is written plainly
is read as written."""

from __future__ import annotations

import json
import textwrap
import time
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agent import dialects
from agent.dialects.parse import describe, replies
from agent.messages import Reply, ToolCall
from benchmarks.answers import answer_span, raw_span, set_aside
from benchmarks.cwi.rules import score
from benchmarks.elements import elements
from benchmarks.fences import blocks
from benchmarks.reasoning import strip_reasoning

TAGS = (
    "<answer> </answer> <answer </ answer> &lt;answer&gt; &lt;/answer&gt; <think> </think> <code> "
    "<thinking> </thinking> [THINK] ◁think▷ <|channel|> <|channel|>analysis<|message|> <|end|> "
    "<|channel|>final<|message|> </code> <tool_call> </tool_call> <function=python> </function> "
    "<parameter=code> </parameter> <arg_key>code</arg_key> <arg_value> <|python_tag|> [TOOL_CALLS] "
    "[ARGS] <interpreter> </interpreter> <｜tool▁call▁begin｜> <｜tool▁sep｜> <｜tool▁call▁end｜> "
    '<|tool_call|> </invoke> <invoke_name="python">'
)
MARKS = [tag.replace("_name", " name") for tag in TAGS.split()] + [
    *("```", "```python", "``` python ", "```json", "~~~", "````", "`", "> ", "- ", "1. ", "\n"),
    "<|channel|>commentary to=python<|message|>",
    *("\r\n", " ", "\t", "'''", '"', "'", "\\", "\\n", "{", "}", "[", "]", ":", ",", "&amp;", "%"),
    *("x()", "x = 1\n", "print(1)", "import os\n", "def f():\n  ", "12", "your answer", "…", "nan"),
    *('{"name": "python", "arguments": {"code": "a()"}}', '{"code": "a()"}', "python", "\ud800"),
]
PIECES = st.lists(st.sampled_from(MARKS), max_size=30).map("".join)
TEXTS = st.one_of(PIECES, st.text(max_size=60), st.tuples(PIECES, st.text(), PIECES).map("".join))
ENDS = st.sampled_from([None, "stop", "length", "tool_calls", "content_filter"])
KEYS = (
    "role content tool_calls message choices finish_reason reasoning reasoning_content refusal "
    "function_call function custom name arguments parameters input id type text thinking code"
)
MESSAGES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=6)
    ),
    max_leaves=20,
)
SAYS_NOTHING = "<`~&[◁{"
"""Characters with which every mark begins."""


def check(line: dict[str, Any]) -> None:
    assert list(line) == ["code", "answer", "malformed", "reasoning"]
    assert all(code.strip() and code.encode("utf-8") for code in line["code"])
    assert line["answer"] is None or line["answer"] == line["answer"].strip()
    assert (line["malformed"] is None) == (bool(line["code"]) or line["answer"] is not None)
    assert line["malformed"] is None or line["malformed"].strip()
    assert line["reasoning"] is None or line["reasoning"] != ""
    json.dumps(line)


@settings(deadline=None, max_examples=300)
@given(TEXTS, TEXTS, ENDS, st.booleans())
def test_any_text(text: str, arguments: str, finish_reason: str | None, called: bool) -> None:
    calls = (ToolCall("a", "python", arguments), ToolCall("", text[:9], text)) if called else ()
    reply = Reply(text, calls, finish_reason=finish_reason)
    for name in ("auto", *dialects.NAMES):
        line = describe(reply, name)
        check(line)
        assert "&" in text or "<answer>" not in (line["answer"] or "")
    for name in dialects.NAMES:
        dialect = dialects.get(name)
        actions = dialect.read(reply)
        assert actions
        assert dialect.assistant(reply).parts or dialect.assistant(reply).tool_calls
        dialect.observation(tuple((action, ()) for action in actions))


@settings(deadline=None, max_examples=300)
@given(MESSAGES)
def test_any_json(message: object) -> None:
    for reply in replies(json.dumps(message)):
        check(describe(reply))


@settings(deadline=None, max_examples=300)
@given(TEXTS, ENDS)
def test_what_is_found_lies_in_the_text(text: str, finish_reason: str | None) -> None:
    for found in (blocks(text), tuple(elements(text)), set_aside(text)):
        ends = [0, *(each.end for each in found)]
        assert all(ends[at] <= each.start < each.end for at, each in enumerate(found))
        assert ends[-1] <= len(text)
    visible, reasoning = strip_reasoning(text)
    assert len(visible) + len(reasoning or "") <= len(text)
    span = answer_span(text, finish_reason)
    assert (span is None) == (raw_span(text, finish_reason) is None)
    if finish_reason != "stop":
        assert span == answer_span(text, None)


@settings(deadline=None, max_examples=300)
@given(TEXTS, ENDS)
def test_a_run_and_a_score_find_the_same_answer(text: str, finish_reason: str | None) -> None:
    reply = Reply(text, finish_reason=finish_reason)
    assume(not describe(reply, "tools")["code"])  # a call as bare JSON is one to a run alone
    assert describe(reply, "tools")["answer"] == answer_span(text, finish_reason)


LINES = st.lists(
    st.sampled_from(
        [
            "x = 1",
            "",
            "if x:\n    y()",
            "s = '''\n  a\n'''",
            "# ü\t",
            "print('a\\n', \"b\")",
            "z(1)",
        ]
    ),
    min_size=1,
    max_size=6,
).map("\n".join)


@settings(deadline=None)
@given(LINES, st.sampled_from(["```", "~~~", "`````"]), st.sampled_from(["\n", "\r\n"]))
def test_code_comes_back_as_written(code: str, fence: str, end: str) -> None:
    assume(code.strip())
    fenced = f"So:\n{fence}python\n{code}\n{fence}\n<answer>1</answer>".replace("\n", end)
    listed = "- so\n" + textwrap.indent(f"{fence}py\n{code}\n{fence}", "  ", lambda _: True)
    quoted = textwrap.indent(f"{fence}py\n{code}\n{fence}", "> ", lambda _: True)
    for text in (fenced, listed, quoted):
        assert describe(Reply(text), "fenced")["code"] == [code]
    tagged = describe(Reply(f"<code>\n{code}\n</code>"), "tags")["code"]
    assert tagged == [code.strip("\n")]
    for arguments in ({"code": code}, json.dumps({"code": code})):
        message = {"tool_calls": [{"function": {"name": "python", "arguments": arguments}}]}
        (reply,) = replies(json.dumps(message))
        assert describe(reply)["code"] == [code]
    text = f"<tool_call>{json.dumps({'name': 'python', 'arguments': {'code': code}})}</tool_call>"
    assert describe(Reply(text))["code"] == [code]


@settings(deadline=None)
@given(
    st.text(max_size=40),
    st.text(st.characters(exclude_characters=SAYS_NOTHING), max_size=40),
    st.text(st.characters(exclude_characters=SAYS_NOTHING), max_size=40),
)
def test_an_answer_comes_back_as_written(inside: str, before: str, after: str) -> None:
    assume(not any(mark in inside for mark in SAYS_NOTHING))
    assume(before.lstrip()[:1] != "{")
    text = f"{before}<answer>{inside}</answer>{after}"
    assert raw_span(text, None) == inside
    assert raw_span(f"{before}<answer>{inside}", "stop") == inside
    assert raw_span(f"{before}<answer>{inside}", "length") is None
    assert raw_span(f"<think>{text}</think>{after}", "stop") is None


DEEP = ["[", '{"a":', '{"content":', '{"message":', "(", "-", "not ", "f(", "x[", '"\\"']


@pytest.mark.parametrize("opens", DEEP)
@pytest.mark.parametrize("depth", [200, 900, 985, 1000, 20_000])
def test_nesting_of_any_depth(opens: str, depth: int) -> None:
    closes = {"[": "]", "{": "}", "(": ")", "f": ")", "x": "]"}.get(opens[0], "")
    text = opens * depth + "1" + closes * depth
    for source in (text, f"[{text}]", json.dumps({"content": text}), f"```\n{text}\n```"):
        for reply in replies(source):
            check(describe(reply))
    arguments = f'{{"code": {text}}}'
    call = f'{{"tool_calls": [{{"function": {{"name": "python", "arguments": {arguments}}}}}]}}'
    for source in (call, f"<tool_call>{text}</tool_call>", f'{{"tool_calls": {text}}}'):
        for reply in replies(source):
            check(describe(reply))
    for dialect in dialects.NAMES:
        dialects.get(dialect).read(Reply(text, (ToolCall("a", "python", arguments),)))


UNITS = [
    *(mark for mark in MARKS if mark.isascii() or len(mark) > 3),
    *("```\n", "```python\n", "```python\nx\n```\n", "```python\n'''\n```\n", "~~~\n````\n"),
    *("```python\n``` a b\n", "> ```\n", "> ```python\n> x\n", "> > ```\n> ``` a b\n", "x()```\n"),
    *(
        "```\nx()\n```\n",
        "```python x()``` ",
        "~~~python x()~~~ ",
        "` `` ",
        "```a`",
        "``` a`",
        "<think ",
        "<answer ",
    ),
    *("- ", "1. ", "a`", "```py ", "~", "~~~ \n", "``` "),
    *('\\"', "\\'", '{"', '{"a":', "{'a':", '{"code": "', "<tool_call>{", "<answer><code>", "<"),
    *(
        "&amp;lt;answer",
        "<answer></answer>",
        "<think></think>",
        "<invoke name=",
        "<code ",
        "[x for ",
    ),
    *("<interpreter></interpreter>", "[TOOL_CALLS]python{", "<answer>```python\n5\n```</answer>"),
]


@pytest.mark.parametrize("unit", UNITS)
def test_work_grows_with_the_length(unit: str) -> None:
    # 30 000 characters take some tenths of a second; a quadratic reader would take many seconds.
    text = unit * (30_000 // len(unit)) + "!"
    begin = time.process_time()
    for name in ("auto", *dialects.NAMES):
        describe(Reply(text, finish_reason="stop"), name)
    describe(Reply("<answer>" + text, (ToolCall("a", "python", text),), finish_reason="stop"))
    describe(Reply("```python\n" + text, finish_reason="length"))
    describe(Reply("<tool_call>" + text, finish_reason="stop"), "tags")
    answer_span(f"<answer>{text}</answer>", None)
    assert time.process_time() - begin < 15


@pytest.mark.parametrize("unit", ["<answer>", "```", "{", "<think>", "`\n", "<code>", '"', "é"])
def test_a_megabyte(unit: str) -> None:
    text = unit * 100_000
    text *= 1_000_000 // len(text)
    begin = time.process_time()
    describe(Reply(text, finish_reason="stop"))
    answer_span(text, "stop")
    assert time.process_time() - begin < 30


NUMBERS = [
    *("1", ".", "e", ",", "-", "- -", "1.", ".5", "1e", "1e9,", "nan", "_", "x1 ", "dx=", "١", "}"),
    *("rows:", "cols: 1 ", "rgb(", "#aabbcc ", "true ", "$", "**", "\\boxed{", "\\text{", "\\,"),
    *("_{a}", "\u2009", "½", "ﷺ", "\u0300", "(", "½ ", "dx, dy = "),
]
TASKS = {
    "circular_shift": "1,2",
    "unshuffle2d": "rows: 1,0; cols: 1,0",
    "swatch_rgb": "1,2,3",
    "transform_chain": "1,2,1,0",
    "anomaly_v2": "(0,1)",
    "crop_provenance": "0,0,1,1",
}


@pytest.mark.parametrize("unit", NUMBERS)
def test_scoring_a_long_span(unit: str) -> None:
    text = unit * (30_000 // len(unit))
    begin = time.process_time()
    for task, gold in TASKS.items():
        assert score(task, gold, text).outcome in ("wrong", "unparsed")
    assert time.process_time() - begin < 15
