"""Every way of writing code and answers that models are known for, and what is read from it."""

from __future__ import annotations

import pytest

from agent import dialects
from agent.dialects import auto
from agent.messages import Action, Answer, Malformed, Reply, Run, ToolCall


def codes(actions: tuple[Action, ...]) -> list[str]:
    return [action.code for action in actions if isinstance(action, Run)]


def answers(actions: tuple[Action, ...]) -> list[str]:
    return [action.text for action in actions if isinstance(action, Answer)]


def hints(actions: tuple[Action, ...]) -> list[str]:
    return [action.hint for action in actions if isinstance(action, Malformed)]


FENCED: dict[str, tuple[str, list[str], str | None]] = {
    # name: (text, code, answer)
    "plain": ("```python\nprint(1)\n```", ["print(1)"], None),
    "py": ("```py\nprint(1)\n```", ["print(1)"], None),
    "case": ("```PYTHON\nprint(1)\n```", ["print(1)"], None),
    "version": ("```python3\nprint(1)\n```", ["print(1)"], None),
    "version with a point": ("```python3.11\nprint(1)\n```", ["print(1)"], None),
    "ipython": ("```ipython\n%time print(1)\n```", ["%time print(1)"], None),
    "blank before label": ("``` python\nprint(1)\n```", ["print(1)"], None),
    "attributes": ("```python {.cell}\nprint(1)\n```", ["print(1)"], None),
    "quarto": ("```{python}\nprint(1)\n```", ["print(1)"], None),
    "colon": ("```python:run\nprint(1)\n```", ["print(1)"], None),
    "file name": ('```python title="a.py"\nprint(1)\n```', ["print(1)"], None),
    "crlf": ("```python\r\nx = 1\r\nprint(x)\r\n```\r\n", ["x = 1\nprint(x)"], None),
    "tilde": ("~~~python\nprint(1)\n~~~", ["print(1)"], None),
    "four ticks hold three": ("````python\ns = '''\n```\n'''\n````", ["s = '''\n```\n'''"], None),
    "info string does not close": (
        "```python\nd = '''\n```python\nx\n'''\nprint(d)\n```",
        ["d = '''\n```python\nx\n'''\nprint(d)"],
        None,
    ),
    "list item": (
        "1. step\n   ```python\n   if 1:\n       print(1)\n   ```",
        ["if 1:\n    print(1)"],
        None,
    ),
    "list mark before the fence": ("- ```python\n  print(1)\n  ```", ["print(1)"], None),
    "indented code": ("```python\n    x = 1\n    print(x)\n```", ["x = 1\nprint(x)"], None),
    "closing fence indented": (
        "```python\nfor i in 'ab':\n    print(i)\n    ```",
        ["for i in 'ab':\n    print(i)"],
        None,
    ),
    "one line": ("Quick check: ```python print(6*7)```", ["print(6*7)"], None),
    "one line in a sentence": ("So ```py print(1)``` and then.", ["print(1)"], None),
    "code on the fence's line": ("```python print(1)\nprint(2)\n```", ["print(1)\nprint(2)"], None),
    "prose before the fence": ("Code: ```python\nprint(1)\n```\ndone", ["print(1)"], None),
    "closed at the end of a code line": (
        "```python\nprint(1)```\n<answer>2</answer>",
        ["print(1)"],
        "2",
    ),
    "tag right after the fence": ("```python\nprint(1)\n```<answer>2</answer>", ["print(1)"], "2"),
    "two blocks": (
        "```python\nx=1\n```\nthen\n```python\nprint(x)\n```",
        ["x=1", "print(x)"],
        None,
    ),
    "unclosed": ("```python\nprint(1)\n", ["print(1)"], None),
    "unlabelled code": ("```\nimport os\nprint(os)\n```", ["import os\nprint(os)"], None),
    "unlabelled output beside code": (
        "```python\nprint(2**10)\n```\nOutput:\n```\n1000\n```\n<answer>1000</answer>",
        ["print(2**10)"],
        "1000",
    ),
    "table before code": (
        "```\n0   5   10\n```\n```python\nprint('real')\n```",
        ["print('real')"],
        None,
    ),
    "unlabelled number": ("```\n1000\n```", [], None),
    "unlabelled names": ("```\nrows, cols\n```", [], None),
    "json": ('```json\n{"k": 1}\n```', [], None),
    "text": ("```text\nprint(1)\n```", [], None),
    "bash": ("```bash\nrm -rf /\n```\n<answer>B</answer>", [], "B"),
    "python-repl": ("```python-repl\n>>> print(1)\n```", [], None),
    "pythonic": ("```pythonic\nprint(1)\n```", [], None),
    "markdown that quotes code": ("````markdown\n```python\nprint(1)\n```\n````", [], None),
    "answer in an unlabelled fence": ("```\n<answer>7</answer>\n```", [], "7"),
    "answer printed by code": (
        "```python\nprint('<answer>7</answer>')\n```",
        ["print('<answer>7</answer>')"],
        None,
    ),
    "answer in unlabelled code": (
        "```\nprint('<answer>7</answer>')\n```",
        ["print('<answer>7</answer>')"],
        None,
    ),
    "code and answer": ("```python\nprint(1)\n```\n<answer>1</answer>", ["print(1)"], "1"),
    "answer alone": ("so <answer> 4, 5 </answer>.", [], "4, 5"),
    "empty answer": ("<answer></answer>", [], ""),
    "thinking": (
        "<think>\n```python\nboom()\n```\n<answer>1</answer></think>\n```python\nok()\n```",
        ["ok()"],
        None,
    ),
    "only the closing think tag": ("```python\nx()\n```\n</think><answer>2</answer>", [], "2"),
    "nothing": ("I cannot tell.", [], None),
    "empty": ("", [], None),
    "empty block": ("```python\n```", [], None),
    "tool call left as text": (
        '<tool_call>\n{"name": "python", "arguments": {"code": "print(1)"}}\n</tool_call>',
        ["print(1)"],
        None,
    ),
    "answer marked up as code": ("<answer><code>5</code></answer>", [], "<code>5</code>"),
    "html code is markup here": ("It is <code>5</code>: <answer>5</answer>", [], "5"),
}


@pytest.mark.parametrize("name", FENCED)
def test_fenced(name: str) -> None:
    text, code, answer = FENCED[name]
    actions = dialects.get("fenced").read(Reply(text))
    assert codes(actions) == code
    assert answers(actions) == ([] if answer is None else [answer])
    assert bool(hints(actions)) == (not code and answer is None)


@pytest.mark.parametrize("name", [name for name in FENCED if name != "html code is markup here"])
def test_auto_reads_fences_the_same(name: str) -> None:
    text, code, answer = FENCED[name]
    actions = auto.read(Reply(text))
    assert (codes(actions), answers(actions)) == (code, [] if answer is None else [answer])


@pytest.mark.parametrize(
    ("text", "finish_reason", "code", "hint"),
    [
        ("```python\nprint(", "length", [], "cut off"),
        ("```python\na()\n```\n```python\nb(", "length", ["a()"], None),
        ("```python\nprint(1)\n", "stop", ["print(1)"], None),
        ("so far so good", "length", [], "cut off"),
        ("```text\nx\n```", "stop", [], "found: text"),
        ("```\nx\n```", "stop", [], "found: no label"),
        ("```python\n\n```", "stop", [], "empty"),
        ("", "stop", [], "empty"),
    ],
)
def test_fenced_ends(text: str, finish_reason: str, code: list[str], hint: str | None) -> None:
    actions = dialects.get("fenced").read(Reply(text, finish_reason=finish_reason))
    assert codes(actions) == code
    assert len(hints(actions)) == (hint is not None)
    assert hint is None or hint in hints(actions)[0]


TAGS: dict[str, tuple[str, str | None, list[str], str | None]] = {
    # name: (text, finish reason, code, answer)
    "plain": ("<code>print(1)</code>", "stop", ["print(1)"], None),
    "stop string cut off": ("go <code>\nprint(1)\n", "stop", ["print(1)"], None),
    "cut by length": ("<code>print(", "length", [], None),
    "fence inside": ("<code>\n```python\nprint(1)\n```\n</code>", "stop", ["print(1)"], None),
    "case": ("<CODE>print(1)</Code>", "stop", ["print(1)"], None),
    "two": ("<code>a()</code> then <code>b()</code>", "stop", ["a()", "b()"], None),
    "escaped": ("<code>print(1 &lt; 2)</code>", "stop", ["print(1 < 2)"], None),
    "amp in a string stays": ("<code>print('&lt;')</code>", "stop", ["print('&lt;')"], None),
    "answer printed": (
        "<code>print('<answer>1</answer>')</code>",
        "stop",
        ["print('<answer>1</answer>')"],
        None,
    ),
    "output made up": (
        "<code>a()</code><interpreter>\n<answer>4</answer>\n</interpreter>",
        "stop",
        ["a()"],
        None,
    ),
    "and answer": ("<code>a()</code><answer>3</answer>", "stop", ["a()"], "3"),
    "call with object": (
        '<tool_call>{"name": "x", "arguments": {"code": "a()"}}</tool_call>',
        "stop",
        ["a()"],
        None,
    ),
    "call with string": (
        '<tool_call>{"name": "python", "arguments": "{\\"code\\": \\"a()\\"}"}</tool_call>',
        "stop",
        ["a()"],
        None,
    ),
    "call unclosed": (
        '<tool_call>{"name": "x", "arguments": {"code": "a()"}}',
        "stop",
        ["a()"],
        None,
    ),
    "call in markup": (
        "<tool_call>\n<function=python>\n<parameter=code>\na()\nb()\n</parameter>\n</function>\n"
        "</tool_call>",
        "stop",
        ["a()\nb()"],
        None,
    ),
    "empty": ("<code> </code>", "stop", [], None),
    "answer marked up": ("<answer><code>5</code></answer>", "stop", [], "<code>5</code>"),
    "in thinking": ("<think><code>a()</code></think><answer>1</answer>", "stop", [], "1"),
}


@pytest.mark.parametrize("name", TAGS)
def test_tags(name: str) -> None:
    text, finish_reason, code, answer = TAGS[name]
    reply = Reply(text, finish_reason=finish_reason)
    for actions in (dialects.get("tags").read(reply), auto.read(reply)):
        assert codes(actions) == code
        assert answers(actions) == ([] if answer is None else [answer])
        assert bool(hints(actions)) == (not code and answer is None)


def test_auto_leaves_tags_inside_fences_alone() -> None:
    text = "```python\nprint('<code>no</code>')\n```\n```html\n<code>no</code>\n```"
    assert codes(auto.read(Reply(text))) == ["print('<code>no</code>')"]


def call(arguments: str, name: str = "python", call_id: str = "c1") -> ToolCall:
    return ToolCall(call_id, name, arguments)


ARGUMENTS: dict[str, tuple[str, str, str | None]] = {
    # name: (function, arguments, code or None for a hint)
    "plain": ("python", '{"code": "print(1)"}', "print(1)"),
    "any name": ("look_closer", '{"code": "print(1)"}', "print(1)"),
    "beside other keys": ("python", '{"timeout": 5, "code": "print(1)"}', "print(1)"),
    "raw newline": ("python", '{"code": "a = 1\nprint(a)"}', "a = 1\nprint(a)"),
    "invalid escape": ("python", r"""{"code": "re.findall('\d+', s)"}""", r"re.findall('\d+', s)"),
    "loose escapes outside": ("python", '{"code": "print(1)", \\n\\n "timeout": 5\\n}', "print(1)"),
    "escaped twice": ("python", r'{"code": "a = 1\\nprint(a)"}', "a = 1\nprint(a)"),
    "newline in a string": ("python", r"""{"code": "print('a\\n')"}""", r"print('a\n')"),
    "encoded twice": ("python", '"{\\"code\\": \\"print(1)\\"}"', "print(1)"),
    "in a fence": ("python", '```json{"code": "print(1)"}```', "print(1)"),
    "code in a fence": ("python", '{"code": "```python\\nprint(1)\\n```"}', "print(1)"),
    "braces in code": ("python", r'{"code": "print(\"}}\")"}', 'print("}}")'),
    "single quotes": ("python", "{'code': 'print(1)',}", "print(1)"),
    "list of lines": ("python", '{"code": ["a = 1", "print(a)"]}', "a = 1\nprint(a)"),
    "bare list": ("python", '["a = 1", "print(a)"]', "a = 1\nprint(a)"),
    "list of one object": ("python", '[{"code": "print(1)"}]', "print(1)"),
    "bare code": ("python", "print(1)", "print(1)"),
    "bare string": ("python", '"print(1)"', "print(1)"),
    "another key": ("run_python", '{"script": "print(1)"}', "print(1)"),
    "another key, not our name": ("search", '{"query": "cats"}', None),
    "wrong type": ("python", '{"code": 5}', None),
    "empty": ("python", "", None),
    "null": ("python", "null", None),
    "empty object": ("python", "{}", None),
    "blank code": ("python", '{"code": "  "}', None),
    "cut": ("python", '{"code": "print(1', None),
    "other object": ("python", "[[1]]", None),
    "deep": ("python", "[" * 100_000, None),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_tool_arguments(name: str) -> None:
    function, arguments, code = ARGUMENTS[name]
    (action,) = dialects.get("tools").read(Reply("", (call(arguments, function),)))
    if code is None:
        assert isinstance(action, Malformed)
        assert len(action.hint) < 400
        assert "\n" not in action.hint
    else:
        assert action == Run(code, "c1")
    assert not isinstance(action, Answer)
    assert getattr(action, "call_id") == "c1"  # noqa: B009 - both kinds have one


@pytest.mark.parametrize(
    ("calls", "finish_reason", "hint"),
    [
        ((call('{"query": "x"}', "search"),), "tool_calls", "no function `search`"),
        ((call("{"),), "tool_calls", "not valid JSON (Expecting"),
        ((call('{"code": "print(1'),), "length", "cut off"),
        ((call(""),), "tool_calls", "no arguments"),
    ],
)
def test_tool_hints_say_what_is_wrong(
    calls: tuple[ToolCall, ...], finish_reason: str, hint: str
) -> None:
    (action,) = dialects.get("tools").read(Reply("", calls, finish_reason=finish_reason))
    assert isinstance(action, Malformed)
    assert hint in action.hint


def test_tools_reads_calls_in_order_then_the_answer() -> None:
    reply = Reply(
        "first <answer>1</answer>",
        (
            call('{"code": "a()"}', call_id="a"),
            call("{", call_id="b"),
            call('{"code": "c()"}', call_id="c"),
        ),
    )
    kinds = dialects.get("tools").read(reply)
    assert kinds[0] == Run("a()", "a")
    assert isinstance(kinds[1], Malformed)
    assert kinds[1].call_id == "b"
    assert kinds[2:] == (Run("c()", "c"), Answer("1"))


def test_a_call_sent_twice_runs_once_and_ids_are_made_unique() -> None:
    tools = dialects.get("tools")
    twice = call('{"code": "a()"}')
    reply = Reply("", (twice, twice, call('{"code": "b()"}'), call('{"code": "c()"}', call_id="")))
    actions = tools.read(reply)
    assert codes(actions) == ["a()", "b()", "c()"]
    ids = [action.call_id for action in actions if isinstance(action, Run)]
    assert len(set(ids)) == 3
    assert all(ids)
    assert [c.id for c in tools.assistant(reply).tool_calls] == ids
    assert ids == ["c1", "c1_3", "call_4"]


@pytest.mark.parametrize(
    ("text", "code", "answer"),
    [
        ("```python\nprint(1)\n```", [], None),
        ("```python\nprint(1)\n```\n<answer>1</answer>", [], "1"),
        ('<tool_call>{"name": "python", "arguments": {"code": "a()"}}</tool_call>', ["a()"], None),
        ("<answer>3</answer>", [], "3"),
        ("", [], None),
    ],
)
def test_tools_without_calls(text: str, code: list[str], answer: str | None) -> None:
    actions = dialects.get("tools").read(Reply(text))
    assert (codes(actions), answers(actions)) == (code, [] if answer is None else [answer])
    assert bool(hints(actions)) == (not code and answer is None)


def test_tools_say_that_code_in_the_text_is_not_run() -> None:
    (hint,) = hints(dialects.get("tools").read(Reply("```python\nprint(1)\n```")))
    assert hint.startswith("Code in the text of a reply is not run. Call the function `python`")


def test_surrogates_do_not_reach_the_box() -> None:
    (action,) = dialects.get("tools").read(Reply("", (call('{"code": "print(\'\\ud800\')"}'),)))
    assert action == Run("print('?')", "c1")


@pytest.mark.parametrize(
    ("reply", "cut"),
    [
        (Reply("", reasoning="hmm", finish_reason="length"), True),
        (Reply("/think>", reasoning="Let me write ", finish_reason="stop"), True),
        (Reply("<think>and then", finish_reason="length"), True),
        (Reply("<think>a</think>", finish_reason="stop"), True),
        (Reply("", finish_reason="length"), False),
        (Reply("hello", reasoning="hmm", finish_reason="length"), False),
        (Reply("", (call("{}"),), reasoning="hmm"), False),
        (Reply("", reasoning="hmm", refusal="no"), False),
    ],
)
def test_cut_in_reasoning(reply: Reply, cut: bool) -> None:
    assert dialects.cut_in_reasoning(reply) is cut
