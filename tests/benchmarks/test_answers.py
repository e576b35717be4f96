"""From a reply to its answer span: every rule of the span, the cases of the field."""

from __future__ import annotations

import pytest

from benchmarks.answers import answer_span
from benchmarks.reasoning import strip_reasoning

SPANS: list[tuple[str, str, str | None, str | None]] = [
    ("plain", "so <answer>3</answer>", None, "3"),
    ("the last one", "<answer>1</answer> no, <answer>2</answer>", None, "2"),
    ("white space", "<answer>\n 3 \n</answer>", None, "3"),
    ("upper case", "<ANSWER>3</Answer>", None, "3"),
    ("space in the tag", "<answer >3</answer >", None, "3"),
    ("empty", "<answer></answer>", None, ""),
    ("blank", "<answer>\n \n</answer>", None, ""),
    ("none", "It is 3.", "stop", None),
    ("no text", "", "stop", None),
    ("innermost open tag", "Put it in <answer> tags: <answer>3</answer>", None, "3"),
    ("closed twice", "<answer>3</answer> as </answer>", None, "3"),
    ("close alone", "3</answer>", "stop", None),
    ("unclosed, stop", "it is <answer>0.37", "stop", "0.37"),
    ("unclosed, length", "it is <answer>0.37", "length", None),
    ("unclosed, unknown", "it is <answer>0.37", None, None),
    ("unclosed after a complete one, stop", "<answer>1</answer> or <answer>2", "stop", "2"),
    ("unclosed after a complete one, length", "<answer>1</answer> or <answer>2", "length", "1"),
    ("placeholder alone", "as <answer>your answer here</answer>", None, "your answer here"),
    ("latex kept", r"<answer>\boxed{C_8}</answer>", None, r"\boxed{C_8}"),
    ("characters kept", "<answer>−5.13 %</answer>", None, "−5.13 %"),
    ("in reasoning", "<think><answer>1</answer></think> done", "stop", None),
    ("after reasoning", "<think><answer>1</answer></think><answer>2</answer>", None, "2"),
    ("reasoning without its open tag", "<answer>1</answer></think><answer>2</answer>", None, "2"),
    ("reasoning never closed", "<answer>1</answer><think>or <answer>2</answer>", None, "1"),
    ("reasoning cut", "<think>so <answer>2", "stop", None),
    (
        "nested",
        "<think>a <think>b</think> <answer>2</answer></think> <answer>3</answer>",
        None,
        "3",
    ),
    ("opened twice, closed once", "<think>a <think>b</think> <answer>3</answer>", None, "3"),
    ("upper-case reasoning", "<THINK><answer>1</answer></THINK>", None, None),
    ("python fence", "```python\nprint('<answer>1</answer>')\n```", "stop", None),
    ("python fence, other label", "``` Py3\nx = '<answer>1</answer>'\n```", "stop", None),
    ("python fence, one line", "see ```python print('<answer>1</answer>')```", "stop", None),
    ("python fence, after prose", "Code: ```python\n'<answer>1</answer>'\n```", "stop", None),
    ("python fence, unclosed", "```python\n'<answer>1</answer>'", "stop", None),
    ("python fence, glued close", "```python\nx = 1```\n<answer>2</answer>", None, "2"),
    ("python fence, then the tag", "```python\nx\n```<answer>2</answer>", None, "2"),
    ("python fence, indented", "1. so\n   ```python\n   '<answer>1</answer>'\n   ```", None, None),
    ("four ticks", "````python\n'''\n```\n'<answer>1</answer>'\n'''\n````\n", None, None),
    ("info cannot close", "```python\n```text\n<answer>1</answer>\n```\n", None, None),
    ("tildes", "~~~python\n'<answer>1</answer>'\n~~~\n<answer>2</answer>", None, "2"),
    ("shell fence", "```bash\necho '<answer>1</answer>'\n```", None, None),
    ("bare fence", "```\n<answer>1</answer>\n```", None, "1"),
    ("text fence", "```text\n<answer>1</answer>\n```", None, "1"),
    ("xml fence", "```xml\n<answer>1</answer>\n```", None, "1"),
    ("tagged code", "<code>print('<answer>1</answer>')</code>", "stop", None),
    ("tagged code, unclosed", "<code>print('<answer>1</answer>')", "stop", None),
    ("tool call", "<tool_call>{'code': '<answer>1</answer>'}</tool_call>", "stop", None),
    ("code then answer", "```python\nx\n```\n<answer>1.23</answer>", None, "1.23"),
    ("thin space kept", "<answer>12\u202f000</answer>", None, "12\u202f000"),
    ("full width kept", "<answer>１２．５</answer>", None, "１２．５"),
    ("words kept", "<answer>~ 42°C</answer>", None, "~ 42°C"),
    ("not a number", "<answer>-Infinity</answer>", None, "-Infinity"),
    (
        "configuration shown",
        "```json\n{}\n```\n```dockerfile\nFROM x\n```\n<answer>B</answer>",
        None,
        "B",
    ),
    ("output made up", "```python\nx\n```\nOutput:\n```\n1000\n```\n<answer>1</answer>", None, "1"),
    ("end of reasoning cut off", "/think>", "stop", None),
    ("box inside", r"<answer>It is \boxed{C_8H_{10}O}</answer>", None, r"It is \boxed{C_8H_{10}O}"),
    ("windows lines", "```python\r\nx\r\n```\r\n<answer>4</answer>\r\n", None, "4"),
]


@pytest.mark.parametrize(
    ("text", "finish_reason", "span"), [case[1:] for case in SPANS], ids=[c[0] for c in SPANS]
)
def test_span(text: str, finish_reason: str | None, span: str | None) -> None:
    assert answer_span(text, finish_reason) == span


def test_reasoning_is_told_apart() -> None:
    assert strip_reasoning("<think>a</think>b<think>c</think>d") == ("bd", "ac")
    assert strip_reasoning("no tags") == ("no tags", None)
    assert strip_reasoning("a</think>b") == ("b", "a")
    assert strip_reasoning("a<think>b") == ("a", "b")
