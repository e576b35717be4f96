"""Where blocks, elements and reasoning begin and end in a text, to the character."""

from __future__ import annotations

import pytest

from benchmarks.answers import is_placeholder, raw_span, set_aside
from benchmarks.elements import elements
from benchmarks.fences import blocks, unwrapped
from benchmarks.reasoning import strip_reasoning
from benchmarks.syntax import compiles, ends_in_string, looks_like_python

BLOCKS: dict[str, list[str]] = {
    # text: what each block takes up of it, fences included
    "a\n```python\nx\n```\nb": ["```python\nx\n```"],
    "a ```python\nx\n``` <answer>": ["```python\nx\n``` "],
    "- ```\n  x\n  ```  \nb": ["```\n  x\n  ```  "],
    "> ```\n> x\n> ```\nb": ["```\n> x\n> ```"],
    "> ```\n> x\nb": ["```\n> x"],
    "```py\nx\n``` so it is \nb": ["```py\nx\n``` "],
    "```py\nx": ["```py\nx"],
    "```py\nx\n\n": ["```py\nx\n\n"],
    "a ```py x``` b ```py y```": ["```py x```", "```py y```"],
    "a ~~~py x~~~ b": ["~~~py x~~~"],
    "a ``py x`` b": [],
    "```py\nx()```\n```": ["```py\nx()```", "```"],
    "```py\nx(```\n```\nb": ["```py\nx(```\n```"],
    "````\n```\n````": ["````\n```\n````"],
    "```\n~~~\n```": ["```\n~~~\n```"],
    "~~~ a`b\nx\n~~~": ["~~~ a`b\nx\n~~~"],
    "``` a`b\nx": [],
    "> ```py\n> '''\n> ```\n> '''\n> x\nb": ["```py\n> '''\n> ```"],
    "```py\n'''\n```\n'''\n```\n```\n": ["```py\n'''\n```\n'''\n```", "```\n"],
    "```py\n'''\n```\n```\n```\n```\n'''\n```": ["```py\n'''\n```", "```\n```", "```\n'''\n```"],
    "```py\n'''\n```\n```\n```\n'''\n```": ["```py\n'''\n```\n```\n```\n'''\n```"],
    "```py\nx\n``` a b\ny\n```": ["```py\nx\n``` a b\ny\n```"],
    "```py\nx\n``` a b\n\n\n```": ["```py\nx\n``` a b\n\n\n```"],
    "```py\nx\n``` a b\n\n```\n": ["```py\nx\n``` a b\n\n```"],
    "- ```py\n  x\n  ``` a b\n  y\n  ```": ["```py\n  x\n  ``` a b\n  y\n  ```"],
    "````py\nx\n```` a b\n```<b>": ["````py\nx\n```` ", "```<b>"],
    "```py\nx = 1\ny = 2\n": ["```py\nx = 1\ny = 2\n"],
    "```py\nx\n``` python y\nz": ["```py\nx\n``` python y\nz"],
    "```py\nx\n```json\ny": ["```py\nx\n```json\ny"],
    "```py\nx\n  ``` so it is\ny": ["```py\nx\n  ``` "],
    "```py\nx()```  \nb": ["```py\nx()```  "],
    "write ``` to fence\nx\n": [],
    "```py x` y": [],
    "a ```py `x`\ny": [],
    "` ```py x```": ["```py x```"],
    "~~~py\n'''\n```\n~~~\n'''": ["~~~py\n'''\n```\n~~~"],
}


@pytest.mark.parametrize("text", BLOCKS)
def test_blocks(text: str) -> None:
    assert [text[block.start : block.end] for block in blocks(text)] == BLOCKS[text]


LABELS = {
    "```Python3.11\nx\n```": "python",
    "```JSON\n```": "json",
    "```c++\n```": "c++",
    "```{r, echo=FALSE}\n```": "r",
    "```\n```": "",
    "```  \n```": "",
    "``` {.python}\nx\n```": "python",
    "```python=\nx\n```": "python",
    "```print(5)\nx\n```": "print(",
}


@pytest.mark.parametrize("text", LABELS)
def test_labels(text: str) -> None:
    (block,) = blocks(text)
    assert block.label == LABELS[text].rstrip("(") or block.label.startswith(LABELS[text])
    assert block.is_python == (block.label == "python")
    assert block.is_program == (block.label in ("python", "c++", "r"))


@pytest.mark.parametrize(
    ("code", "inside"),
    [
        ("```python\nx\n```", "x"),
        ("\n~~~\nx\n~~~\n", "x"),
        ("```\nx\n```\nand", "```\nx\n```\nand"),
        ("```\nx\n```\n```\ny\n```", "```\nx\n```\n```\ny\n```"),
        ("x = '```'", "x = '```'"),
        ("``x``", "``x``"),
    ],
)
def test_unwrapped(code: str, inside: str) -> None:
    assert unwrapped(code) == inside


ELEMENTS: dict[str, list[tuple[str, str, bool]]] = {
    # text: kind, inside, whether it is closed
    "a<code>x</code>b": [("code", "x", True)],
    "<CODE lang='py'>x</ code >": [("code", "x", True)],
    "<code>x": [("code", "x", False)],
    "<codes>x</codes>": [],
    "<code><tool_call></code>": [("code", "<tool_call>", True)],
    "<tool_call>x</tool_call><functioncall>y</functioncall>": [
        ("tool_call", "x", True),
        ("tool_call", "y", True),
    ],
    "<tool_call >x</tool_call >": [("tool_call", "x", True)],
    "<|tool_call|>x": [("tool_call", "x", False)],
    "[TOOL_CALLS]x[TOOL_CALLS]y</s>": [("listed", "x", True), ("listed", "y", True)],
    "<interpreter>x</interpreter>": [("output", "x", True)],
    "<interpreter>x<code>y</code><interpreter>": [("code", "y", True)],
    "</interpreter><interpreter>x": [],
    "<function=a>x</function>": [("function", "x", True)],
    '<invoke name="a">x</invoke>': [("invoke", "x", True)],
    '<｜DSML｜invoke name="a">x</｜DSML｜invoke>': [("invoke", "x", True)],
    "<|channel|>commentary to=a<|message|>x<|channel|>": [("channel", "x", True)],
    "<|channel|>commentary<|message|>x": [],
    "<|python_tag|>x<|eot_id|>": [("python_tag", "x", True)],
    "<|tool_call_begin|>x<|tool_call_end|>": [("marked", "x", True)],
}


@pytest.mark.parametrize("text", ELEMENTS)
def test_elements(text: str) -> None:
    found = list(elements(text))
    assert [(each.kind, each.inner, each.closed) for each in found] == ELEMENTS[text]
    for each in found:
        assert each.head + each.inner == text[each.start :][: len(each.head + each.inner)]
        assert each.head[0] in "<["


@pytest.mark.parametrize("name", ["interpreter", "tool_response", "sandbox_output", "observation"])
def test_outputs(name: str) -> None:
    for text in (f"<{name}>x</{name}>", f"<{name.upper()} >x</{name} >"):
        assert [(each.kind, each.inner) for each in elements(text)] == [("output", "x")]
    assert not list(elements(f"<{name}>x"))


def test_what_is_set_aside() -> None:
    text = "a ```python\n<code>\nx()\n```\nb <code>5</code> ```bash x``` ```text\ny\n```"
    found = set_aside(text)
    assert [(text[each.start : each.end], each.computes) for each in found] == [
        ("```python\n<code>\nx()\n```", False),
        ("<code>5</code>", False),
    ]
    text = "<code>\n```python\nx()\n```\n</code>"
    assert [(each.start, each.end) for each in set_aside(text)] == [(0, len(text))]
    found = set_aside("```py\nx()\n```\n```sql\nx()\n```\n<tool_call>5</tool_call><code>y()</code>")
    assert [each.computes for each in found] == [True, False, True, True]


def test_elements_and_blocks_hide_each_other() -> None:
    text = "```\n<code>a\n```\n<code>\n```\nb</code>\n```\n<code>c</code>\n```\n<code>d</code>"
    found = elements(text, blocks(text))
    assert [each.inner for each in found] == ["\n```\nb", "c"]
    text = "<code>\n```\na</code> <code>b</code>"
    assert [each.inner for each in elements(text, blocks(text))] == ["\n```\na", "b"]
    text = "```\n<code>a\n```<code>b</code>\n```\n<code>c\n```\n"
    assert [each.inner for each in elements(text, blocks(text))] == ["b"]


def test_where_reasoning_ends() -> None:
    assert strip_reasoning("<think>a</think>b<think>c</think>d") == ("bd", "ac")
    assert strip_reasoning("no tags") == ("no tags", None)
    assert strip_reasoning("a</think>b") == ("b", "a")
    assert strip_reasoning("a<think>b") == ("a", "b")
    assert strip_reasoning("a<think>b<think>c") == ("a", "bc")
    assert strip_reasoning("<think></think>b") == ("b", None)
    assert strip_reasoning("<think>a<think>b</think>c</think>d") == ("d", "abc")
    assert strip_reasoning("<think>a<think>b</think>c") == ("c", "ab")
    assert strip_reasoning("x<think>a</think>b</think>c<think>d</think>e") == ("ce", "xabd")
    assert strip_reasoning("<thinker>a</thinker>") == ("<thinker>a</thinker>", None)
    assert strip_reasoning("<think/>a") == ("<think/>a", None)


def test_channels() -> None:
    text = "a<|channel|>analysis<|message|>b<|end|><|channel|>final<|message|>c"
    assert strip_reasoning(text) == ("a<|channel|>final<|message|>c", "b")
    twice = "<|channel|>analysis<|message|>b<|end|>" * 2
    assert strip_reasoning(twice) == ("", "b\nb")
    torn = "<|channel|>analysis"
    assert strip_reasoning(torn) == (torn, None)


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("x()", (True, True, False)),
        ("import a", (True, True, False)),
        ("from a import b", (True, True, False)),
        ("x = 5", (True, False, False)),
        ("0 5 10", (False, False, False)),
        ("%time\nx()", (True, True, False)),
        ("!ls", (True, False, False)),
        ("if x:\n    %time y\n", (True, False, False)),
        ("a = (5\n% 3)", (True, False, False)),
        ("%time\nx(", (False, False, False)),
        ("x = '''\n", (False, False, True)),
        ('f"""a', (False, False, True)),
        ("x = '", (False, False, False)),
        ("x = '\\d'", (True, False, False)),
        ("a\0b", (False, False, False)),
        ("x()\n" * 25_000, (True, True, False)),
        ("x()\n" * 25_001, (False, False, False)),
        ("(" * 5000, (False, False, False)),
        ("-" * 50_000 + "1", (False, False, False)),
    ],
)
def test_what_is_python(code: str, facts: tuple[bool, bool, bool]) -> None:
    assert (compiles(code), looks_like_python(code), ends_in_string(code)) == facts


def test_placeholders() -> None:
    for span in ("your answer here", "Your Answer", "[answer]", "…", "...", " .. ", "final answer"):
        assert is_placeholder(span), span
    for span in (
        "",
        " ",
        ".",
        "5",
        "answer: 5",
        "answers",
        "my",
        "…5",
        "." * 61,
        "the  answer" * 9,
    ):
        assert not is_placeholder(span), span


@pytest.mark.parametrize(
    ("text", "finish_reason", "span"),
    [
        ("<answer>\n a \n</answer>", None, "\n a \n"),
        ("<answer> a", "stop", " a"),
        ("<answer>a\n```python\nx()\n```\nb", "stop", "a\n\n\nb"),
        ("<answer>a\n```python\nx()\n```\nb</answer>", None, "a\n\n\nb"),
        ("<answer>a<code>5</code>b</answer>", None, "a<code>5</code>b"),
        ("<answer>a<code>5</code>b", "stop", "a\nb"),
        ("<answer>1</answer><answer>2<code>3</code>", "stop", "2\n"),
        ("<code>x()</code><answer>1</answer><code>y()</code>", None, "1"),
        ("<answer>…</answer><answer>...</answer>", None, "..."),
        ("<answer>1<answer>2</answer>3</answer>", None, "2"),
        ("</answer>1<answer>2</answer>", None, "2"),
        (
            "&lt;answer&gt;1&lt;/answer&gt; ```python\n'&lt;answer&gt;2&lt;/answer&gt;'\n```",
            None,
            "1",
        ),
        ("&lt;answer&gt;1 &amp;amp; 2", "stop", "1 &amp; 2"),
        ("<answer a\n```python\nx()\n```\n>1</answer>", None, None),
        ("<answer>1</answer a\n```python\nx()\n```\n>2</answer>", None, "1</answer a\n\n\n>2"),
        ("&LT;ANSWER&gt;1&LT;/answer&gt;", None, "1"),
        ("&lt;answers&gt;1&lt;/answers&gt;", "stop", None),
    ],
)
def test_spans_to_the_character(text: str, finish_reason: str | None, span: str | None) -> None:
    assert raw_span(text, finish_reason) == span
