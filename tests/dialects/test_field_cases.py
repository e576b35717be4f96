"""Replies that broke other runners, and their whole kind, through what `pot parse` reads.

The number of a case is in its id; what follows are replies of the same kind.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from agent.dialects.parse import describe, replies


@dataclass(frozen=True)
class Case:
    source: object
    """Text, or a message, a choice or a completion as JSON."""
    code: tuple[str, ...] = ()
    answer: str | None = None
    says: str = ""
    """Part of the hint; where it is empty, code or an answer was found."""
    reasoning: str | None = None


def ended(text: str, finish_reason: str | None, **more: Any) -> dict[str, Any]:
    return {"finish_reason": finish_reason, "message": {"content": text, **more}}


def called(arguments: object, name: str = "python", **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"id": "c1", "type": "function", "function": function}], **more}


def python(code: object = "a()") -> str:
    return json.dumps({"name": "python", "arguments": {"code": code}})


BRACES = 'print(chr(123) + "}}{")'
NESTED = "doc = '''\n```python\nexample\n```\n'''\nprint('one block')"
THOUGHT = "hmm <answer>1</answer>"

FENCES = {
    "P02": Case(
        "Thought: the axis reads\n```\n0   5   10\n```\nCode:\n```python\nprint('real')\n```",
        ("print('real')",),
    ),
    "P02-code before": Case("```\nprint(1)\n```\nthen\n```python\nprint(2)\n```", ("print(2)",)),
    "P02-alone": Case("```\n0   5   10\n```", says="found: no label"),
    "P02-unlabelled code": Case("```\nimport a\n```\n```\nb()\n```", ("import a", "b()")),
    "P05": Case("Quick check: ```python print(6*7)```", ("print(6*7)",)),
    "P05-no label": Case("```print(6*7)```", ("print(6*7)",)),
    "P05-no label, no code": Case("The mean ```6.5``` it is", says="No code"),
    "P05-glued to its label": Case("```pythonprint(6*7)```", ("print(6*7)",)),
    "P05-glued, lines": Case("```pythonimport os\nprint(os)\n```", ("import os\nprint(os)",)),
    "P05-glued after a blank": Case("``` pythonprint(6*7)```", ("print(6*7)",)),
    "P05-tildes": Case("~~~python print(6*7)~~~", ("print(6*7)",)),
    "P05-statements": Case("```python x=1; print(x)``` and `y`", ("x=1; print(x)",)),
    "P05-two": Case("```py a()``` then ```py b()```", ("a()", "b()")),
    "P05-inside inline code": Case("I would write `x` and ``y`` and ````z````.", says="No code"),
    "P05-numbers": Case("```python 5```", ("5",)),
    "P07": Case(
        "```Python\nprint(0)\n```\n```python3\nprint(1)\n```\n```py\nprint(2)\n```\n```ipython\n"
        "print(3)\n```\n``` python\nprint(4)\n```\n```python {.cell}\nprint(5)\n```\n```PYTHON\n"
        "print(6)\n```",
        tuple(f"print({n})" for n in range(7)),
    ),
    **{
        f"P07-{info}": Case(f"```{info}\nprint(1)\n```", ("print(1)",))
        for info in (
            "python:run", "python3.11", "Python 3", "py3", "{python}", "{.python .numberLines}",
            "{code-cell} ipython3", "python, editable", "python\u00a0", "jupyter", "tool_code",
            "python-exec", "py:main.py", 'python title="a.py"', "\tpython\t",
        )
    },
    **{
        f"P07-not {info}": Case(f"```{info}\nprint(1)\n```", says="Only ```python blocks are run")
        for info in ("pythonic", "pycon", "python-repl", "text", "output", "jupyterlab", "pyx")
    },
    "P08": Case(
        "1. step\n   ```python\n   x = 1\n   if x:\n       print('indented ok')\n   ```\n"
        "~~~python\nprint('tilde ok')\n~~~\n"
        "````python\ns = '''\n```\n'''\nprint('four ok')\n````\n",
        (
            "x = 1\nif x:\n    print('indented ok')",
            "print('tilde ok')",
            "s = '''\n```\n'''\nprint('four ok')",
        ),
    ),
    "P08-four tildes hold three": Case("~~~~python\nx()\n~~~\ny\n~~~~", ("x()\n~~~\ny",)),
    "P08-longer closing": Case("```python\nx()\n`````\n<answer>1</answer>", ("x()",), "1"),
    "P08-tildes do not close ticks": Case("```python\n'''\n~~~\n'''\n```", ("'''\n~~~\n'''",)),
    "P08-quoted": Case(
        "> ```python\n> x = 1\n>\n> print(x)\n> ```\n<answer>1</answer>",
        ("x = 1\n\nprint(x)",), "1",
    ),
    "P08-quoted, not closed": Case(
        "> ```python\n> print(1)\n<answer>1</answer>", ("print(1)",), "1"
    ),
    "P08-quoted twice, in a list": Case("> > - ```python\n> >   x()\n> >   ```", ("x()",)),
    "P08-quoted without blanks": Case(">```python\n>if x:\n>    y()\n>```", ("if x:\n    y()",)),
    "P08-list in a list": Case(
        "1. a\n   - b\n     ```python\n     for i in x:\n         print(i)\n\n     z()\n     ```",
        ("for i in x:\n    print(i)\n\nz()",),
    ),
    "P08-a line further left": Case("1. ```py\n   x = 1\n  y = 2\n   ```", ("x = 1\ny = 2",)),
    "P08-a blank line, then an indent": Case("```py\n\n    x()\n    y()\n```", ("\nx()\ny()",)),
    "P08-tabs": Case("-\t```python\n\tprint(1)\n\t```", ("print(1)",)),
    "P08-CRLF": Case("```python\r\nx=1\r\nprint(x)\r\n```\r\n<answer>2</answer>\r\n",
                     ("x=1\nprint(x)",), "2"),
    "P08-after prose": Case("**Code:** ```python\nprint(1)\n```", ("print(1)",)),
    "P08-closed with blanks after": Case(
        "```python\nx()\n```  \n<answer>1</answer>", ("x()",), "1"
    ),
    "P08-closed on the code's line": Case("```python\nx()```\n<answer>1</answer>", ("x()",), "1"),
    "P08-closed, prose after": Case("```python\nx()\n``` So it is.\n<answer>1</answer>",
                                    ("x()",), "1"),
    "P08-closed, prose after, twice": Case(
        "```python\nx()\n``` So it is.\n```python\ny()\n``` And so.\n<answer>1</answer>",
        ("x()", "y()"), "1",
    ),
    "P08-empty": Case("```python\n```", says="empty"),
    "P08-blank": Case("```python\n  \n\t\n```", says="empty"),
    "P08-markdown that quotes": Case("````markdown\n```python\nx()\n```\n````", says="markdown"),
    "P08-escaped by a gateway": Case(
        "```python\nif 1 &lt; 2:\n    print(&quot;a&quot;)\n```", ('if 1 < 2:\n    print("a")',)
    ),
    "P08-entities of its own": Case("```python\nprint('&lt;')\n```", ("print('&lt;')",)),
    "P08-tags in the fence": Case("```python\n<code>\nprint(1)\n</code>\n```", ("print(1)",)),
    "P08-tags in a string of the fence": Case(
        "```python\nx('<code>')\n```\nso <code>y()</code>", ("y()",)
    ),
    "P08-tags in a string, an answer": Case(
        "```python\nx('<code>')\n```\n<answer>1</answer> <code>5</code>", ("5",), "1"
    ),
    "P08-calls in a string": Case(
        "```python\nx('<tool_call>')\n```\n<answer>1</answer>", ("x('<tool_call>')",), "1"
    ),
    "P09": Case(
        "```python\ndoc = '''\n```python\nexample\n'''\nprint('one block')\n```",
        ("doc = '''\n```python\nexample\n'''\nprint('one block')",),
    ),
    "P09-other label": Case("```python\nd = '''\n```json\n{}\n'''\nx()\n```",
                            ("d = '''\n```json\n{}\n'''\nx()",)),
    "P09-closed in the string": Case(
        f"```python\n{NESTED}\n```\n<answer>1</answer>", (NESTED,), "1"
    ),
    "P09-string never ends": Case("```python\nd = '''\n```\nand\n```\nb\n```", ("d = '''",)),
    "P09-string ends outside": Case(
        "```python\nd = '''\n```\nit's '''\n```python\ny()\n```", ("d = '''", "y()")
    ),
    "P10": Case(
        'Use this config:\n```json\n{"k": 1}\n```\n```dockerfile\nFROM python:3\n```\n```bash\n'
        "rm -rf /work\n```\n<answer>B</answer>",
        (), "B",
    ),
    **{
        f"P10-{label}": Case(f"```{label}\nprint('x')\nrm(-1)\n```", says=f"found: {label}")
        for label in ("sh", "bash", "json", "yaml", "diff", "javascript", "c++", "console", "sql")
    },
    "P10-JSON of another's call": Case(
        '```json\n{"name": "search", "arguments": {"query": "x"}}\n```', says="found: json"
    ),
    "cut, open": Case(ended("```python\nprint(1)", "length"), says="cut off"),
    "cut, closed": Case(ended("```python\nx()\n```\nSo", "length"), ("x()",)),
    "cut, second open": Case(ended("```python\nx()\n```\n```python\ny(", "length"), ("x()",)),
    "stopped, open": Case(ended("```python\nprint(1)\n\n", "stop"), ("print(1)",)),
    "filtered, open": Case(ended("```python\nprint(1)", "content_filter"), says="cut off"),
}  # fmt: skip

ANSWERS = {
    "P11": Case(
        "```python\nprint(2**10)\n```\nOutput:\n```\n1000\n```\nSo the value is 1000.\n"
        "<answer>1000</answer>",
        ("print(2**10)",), "1000",
    ),
    "P11-made-up output holds a span": Case(
        "<code>\nx()\n</code>\n<interpreter>\n<answer>5</answer>\n</interpreter>", ("x()",)
    ),
    "P11-made-up output alone": Case("<tool_response><answer>5</answer></tool_response>",
                                     says="No code"),
    "P11-made-up output, open": Case("<interpreter> it says <answer>5</answer>", (), "5"),
    "P14": Case(
        "<think>Maybe\n```python\nimport os; os.remove('x')\n```\nor <answer>7</answer>?</think>\n"
        "```python\nprint('visible code')\n```",
        ("print('visible code')",),
        reasoning="Maybe\n```python\nimport os; os.remove('x')\n```\nor <answer>7</answer>?",
    ),
    "P14-code elements": Case("<think><code>a()</code></think><code>b()</code>", ("b()",),
                              reasoning="<code>a()</code>"),
    "P15": Case(
        "First guess <answer>12</answer>, but the scale is log...\n</think>\n\nThe value is "
        "<answer>0.12</answer>",
        (), "0.12", reasoning="First guess <answer>12</answer>, but the scale is log...",
    ),
    "P15-twice": Case("a</think>b <answer>1</answer></think><answer>2</answer>", (), "2",
                      reasoning="ab <answer>1</answer>"),
    "P15-nothing after": Case("<answer>1</answer></think>", says="cut in reasoning",
                              reasoning="<answer>1</answer>"),
    "P16": Case(
        "<think>a <think>b <answer>1</answer></think> c <answer>2</answer></think> Final: "
        "<answer>3</answer>",
        (), "3", reasoning="a b <answer>1</answer> c <answer>2</answer>",
    ),
    "P16-opened twice, closed once": Case("<think>a <think>b</think><answer>3</answer>", (), "3",
                                          reasoning="a b"),
    "P16-one after the other": Case("<think>a</think>x<think>b</think><answer>3</answer>", (), "3",
                                    reasoning="ab"),
    "P16-open at the end": Case("<answer>1</answer><think>or <answer>2</answer>", (), "1",
                                reasoning="or <answer>2</answer>"),
    **{
        f"P16-{opens}": Case(f"{opens}{THOUGHT}{closes}<answer>2</answer>", (), "2",
                             reasoning=THOUGHT)
        for opens, closes in (
            ("<thinking>", "</thinking>"), ("<THOUGHT>", "</Thought>"), ("<think >", "</ think>"),
            ("<reasoning>", "</reasoning>"), ('<think mode="long">', "</think>"),
            ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"), ("<think>", "</thinking>"),
            ("<seed:think>", "</seed:think>"), ("", "</thinking>"),
            ("<|begin_of_thought|>", "<|end_of_thought|>"),
            (
                "<|channel|>analysis<|message|>",
                "<|end|><|start|>assistant<|channel|>final<|message|>",
            ),
        )
    },
    "P16-analysis alone": Case("<|channel|>analysis<|message|>so <answer>1</answer>",
                               says="cut in reasoning", reasoning="so <answer>1</answer>"),
    "P16-analysis and thinking": Case(
        "<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|><think>b</think>"
        "<answer>1</answer>", (), "1", reasoning="a\nb",
    ),
    "P16-end of a message is no end of thinking": Case("<answer>1</answer><|end|>", (), "1"),
    "P19": Case(
        "You asked me to reply as <answer>your answer here</answer>. The chart shows a maximum "
        "near 3 eV, so <answer>3 eV</answer>.",
        (), "3 eV",
    ),
    "P19-alone": Case("As <answer>your answer here</answer>.", (), "your answer here"),
    **{
        f"P19-after, {form}": Case(f"<answer>3 eV</answer>, in the form <answer>{form}</answer>.",
                                   (), "3 eV")
        for form in ("your answer here", "...", "…", "[Your Answer]", "final answer", " answer ")
    },
    **{
        f"P19-no placeholder, {form}": Case(f"<answer>3</answer> or <answer>{form}</answer>",
                                            (), form)
        for form in ("", "4", ".", "no answer", "answer: 4", "the answer is here: 4")
    },
    "P20-empty": Case("<answer></answer>", (), ""),
    "P20-blank": Case("<answer>\n \n</answer>", (), ""),
    "P20-none": Case("I cannot tell from the image.", says="No code and no answer found."),
    "P20-empty message": Case({"role": "assistant", "content": ""}, says="Your reply was empty."),
    "P20-blank message": Case({"role": "assistant", "content": " \n"}, says="reply was empty."),
    "P20-null message": Case({"role": "assistant", "content": None}, says="Your reply was empty."),
    "P21": Case(
        {
            "finish_reason": "stop",
            "stop_reason": "</answer>",
            "message": {"role": "assistant", "content": "The slope is <answer>0.37"},
        },
        (), "0.37",
    ),
    "P21-length": Case(ended("The slope is <answer>0.37", "length"), says="cut off"),
    "P21-no reason": Case(ended("The slope is <answer>0.37", None), says="No code"),
    "P21-bare text": Case("The slope is <answer>0.37", says="No code"),
    "P21-bare message": Case({"content": "<answer>7", "finish_reason": "stop"}, (), "7"),
    "P21-completion": Case({"choices": [ended("<answer>7", "stop")]}, (), "7"),
    "P21-after a whole one": Case(ended("<answer>1</answer> or <answer>2", "stop"), (), "2"),
    "P21-after a whole one, length": Case(ended("<answer>1</answer> or <answer>2", "length"),
                                          (), "1"),
    "P21-tag named in prose": Case(
        ended("I give the <answer> later.\n```python\nx()\n```", "stop"), ("x()",), "later."
    ),
    "P22": Case(
        {
            "finish_reason": "stop",
            "message": {"reasoning_content": "Let me write ", "content": "/think>"},
        },
        says="cut in reasoning", reasoning="Let me write ",
    ),
    **{
        f"P22-{torn or 'nothing'}": Case(ended(torn, "stop", reasoning="so"),
                                         says="cut in reasoning", reasoning="so")
        for torn in ("", " ", "</think", "think>", "<think", "<thi", "nk>", "k>", ">", " /think>\n")
    },
    "P22-words": Case(ended("so?", "stop", reasoning="so"), says="No code", reasoning="so"),
    "P22-length": Case(ended("<think>and", "length"), says="cut in reasoning", reasoning="and"),
    "P23": Case("Therefore $\\boxed{\\dfrac{3}{\\sqrt{2}}}$.", says="No code and no answer"),
    "P27": Case("<answer>The compound is \\boxed{C_8H_{10}O}</answer>", (),
                "The compound is \\boxed{C_8H_{10}O}"),
    "P28": Case(
        "<answer>\\boxed{35\\,\\text{cm}^{-1}} ... so \\boxed{4.1\\ \\text{ppm}}</answer>", (),
        "\\boxed{35\\,\\text{cm}^{-1}} ... so \\boxed{4.1\\ \\text{ppm}}",
    ),
    "P29": Case(ended("Earlier \\boxed{A}. Finally \\boxed{\\text{4-methyl", "length"),
                says="cut off"),
    **{
        f"P31-{text}": Case(f"<answer>{text}</answer>", (), text)
        for text in ("−5.13 %", "1,57", "12\u202f000", "１２．５", "2.5 × 10⁻³")
    },
    **{
        f"P32-{text}": Case(f"<answer>{text}</answer>", (), text)
        for text in ("42!", "(42).", "60%", "~ 42°C")
    },
    **{
        f"P33-{text}": Case(f"<answer>{text}</answer>", (), text)
        for text in ("NaN", "inf", "-Infinity", "1e999")
    },
    "P42": Case("```python\npeak = 1.234\nprint(peak)\n```\n<answer>1.23</answer>",
                ("peak = 1.234\nprint(peak)",), "1.23"),
    "P42-answer first": Case("<answer>1.23</answer>\n```python\nx()\n```", ("x()",), "1.23"),
    "P42-native call": Case(called('{"code": "a()"}', content="<answer>5</answer>"),
                            ("a()",), "5"),
    "any case": Case("<ANSWER>3</Answer>", (), "3"),
    "attributes": Case('<answer type="int">5</answer>', (), "5"),
    "blanks in the tags": Case("<answer >5</ answer >", (), "5"),
    "closed at once": Case("<answer/> 5", says="No code"),
    "another tag": Case("<answers>5</answers>", says="No code"),
    "innermost": Case("<answer><answer>5</answer></answer>", (), "5"),
    "bold": Case("**<answer>**5**</answer>**", (), "**5**"),
    "inline code": Case("`<answer>5</answer>`", (), "5"),
    "escaped by a gateway": Case("so &lt;answer&gt;5 &lt; 6&lt;/answer&gt;", (), "5 < 6"),
    "escaped, open": Case(ended("&lt;answer&gt;5", "stop"), (), "5"),
    "escaped beside a real one": Case("&lt;answer&gt;4&lt;/answer&gt; <answer>5</answer>", (), "5"),
    "escaped twice": Case("&amp;lt;answer&amp;gt;5&amp;lt;/answer&amp;gt;", says="No code"),
    "escaped in code": Case("```python\nx('&lt;answer&gt;5&lt;/answer&gt;')\n```",
                            ("x('&lt;answer&gt;5&lt;/answer&gt;')",)),
    "in a string of code": Case("```python\nprint('<answer>7</answer>')\n```",
                                ("print('<answer>7</answer>')",)),
    "in code that is not run": Case("```bash\necho '<answer>7</answer>'\n```", says="found: bash"),
    "in a text fence": Case("```text\n<answer>7</answer>\n```", (), "7"),
    "in an open fence": Case("```\n<answer>7</answer>", (), "7"),
    "in arguments": Case(called('{"code": "print(\'<answer>7</answer>\')"}'),
                         ("print('<answer>7</answer>')",)),
    "holds a Python fence": Case("<answer>\n```python\n12, 5\n```\n</answer>", (),
                                 "```python\n12, 5\n```"),
    "holds a Python fence on one line": Case("<answer>```python 12,5```</answer>", (),
                                             "```python 12,5```"),
    "holds a fence": Case("<answer>\n```\n12, 5\n```\n</answer>", (), "```\n12, 5\n```"),
    "holds a fence with code": Case("<answer>\n```\nprint(5)\n```\n</answer>", (),
                                    "```\nprint(5)\n```"),
    "holds markup": Case("<answer>It is <code>5</code>.</answer>", (), "It is <code>5</code>."),
    "holds markup, code before": Case("<code>x()</code><answer><code>5</code></answer>",
                                      ("x()",), "<code>5</code>"),
    "holds another language": Case("<answer>```sql\nselect 5\n```</answer>", (),
                                   "```sql\nselect 5\n```"),
    "is a program": Case("<answer>\n```python\nprint(5)\n```\n</answer>", ("print(5)",)),
    "is a call": Case(f"<answer>\n```json\n{python()}\n```\n</answer>", ("a()",)),
    "is a program in tags": Case("<answer><code>print(5)</code></answer>", ("print(5)",)),
    "is a program, an answer before": Case(
        "<answer>4</answer><answer>```python\nprint(5)\n```</answer>", ("print(5)",), "4"
    ),
    "holds a program": Case("<answer>\n```python\nprint(5)\n```\nso 5</answer>", ("print(5)",),
                            "so 5"),
    "code between open tags": Case("In <answer> tags:\n```python\n5\n```\n<answer>6</answer>",
                                   ("5",), "6"),
}  # fmt: skip

CALLS = {
    "P44": Case(called('{"code": "print(1)", \\n\\n "timeout": 5\\n}'), ("print(1)",)),
    "P44-before": Case(called('\\n\\t{"code": "a()"}'), ("a()",)),
    "P44-after": Case(called('{"code": "a()"}\\n'), ("a()",)),
    "P44-beyond repair": Case(called('{"code": "a()", \\x "b": 5}'),
                              says="are not valid JSON (Expecting property name"),
    "P45": Case(called('{"code": "def f(a):\\\\n    return a * 2\\\\nprint(f(4))"}'),
                ("def f(a):\n    return a * 2\nprint(f(4))",)),
    "P45-tabs": Case(called('{"code": "if 1:\\\\n\\\\tx()"}'), ("if 1:\n\tx()",)),
    "P45-quotes": Case(called('{"code": "print(\\\\\\"a\\\\\\")\\\\nx()"}'), ('print("a")\nx()',)),
    "P45-single quotes": Case(called('{"code": "print(\\\\\'a\\\\\')"}'), ("print('a')",)),
    "P45-strings left alone": Case(called(r"""{"code": "print('a\\n')"}"""), (r"print('a\n')",)),
    "P45-strings beside": Case(called('{"code": "x = \\"a\\\\n\\"\\\\nprint(x)"}'),
                               ('x = "a\\n"\nprint(x)',)),
    "P45-CR LF": Case(called('{"code": "a()\\\\r\\\\nb()"}'), ("a()\nb()",)),
    "P45-CR LF, strings beside": Case(called('{"code": "x = \\"a\\\\n\\"\\\\r\\\\nprint(x)"}'),
                                      ('x = "a\\n"\nprint(x)',)),
    "P45-partly": Case(called('{"code": "import re\\na()\\\\nb()"}'), ("import re\na()\nb()",)),
    "P45-wrong both ways": Case(called('{"code": "a(\\\\nb"}'), ("a(\\nb",)),
    "P47": Case(called('{"code": "import re\\nprint(re.findall(\'\\d+\', \'a12\'))"}'),
                ("import re\nprint(re.findall('\\d+', 'a12'))",)),
    "P47-path": Case(called(r"""{"code": "open('C:\Work\data')"}"""), (r"open('C:\Work\data')",)),
    "P47-short unicode": Case(called(r"""{"code": "p('\u12')"}"""), (r"p('\u12')",)),
    "P47-hex": Case(called(r"""{"code": "p('\x41')"}"""), (r"p('\x41')",)),
    "P47-at the end": Case(called('{"code": "a()"\\'), says="not valid JSON"),
    "P48": Case(called("```json{\"code\": \"print('fenced')\"}```"), ("print('fenced')",)),
    "P48-lines": Case(called('```json\n{"code": "a()"}\n```'), ("a()",)),
    "P48-no label": Case(called('```\n{"code": "a()"}\n```\n'), ("a()",)),
    "P48-code fenced": Case(called({"code": "```python\na()\n```"}), ("a()",)),
    "P48-code fenced on one line": Case(called({"code": "```py a()```"}), ("a()",)),
    "P48-code in tags": Case(called({"code": "<code>\na()\n</code>"}), ("a()",)),
    "P48-code in tags, blanks around": Case(called({"code": " <code>a()</code>\n"}), ("a()",)),
    "P48-a Python fence": Case(called("```python\nprint(1)\n```"), ("print(1)",)),
    "P48-in a call as text": Case(f"<tool_call>\n```json\n{python()}\n```\n</tool_call>", ("a()",)),
    "P52": Case(
        ended(
            '<tool_call>\n{"name": "run_python", "arguments": {"code": "d = {\'a\': {\'b\': 1}}\\n'
            'print(d)"}}\n</tool_call>',
            "stop",
        ),
        ("d = {'a': {'b': 1}}\nprint(d)",),
    ),
    "P52-two": Case(f"<tool_call>{python()}</tool_call>\n<tool_call>{python('b()')}</tool_call>",
                    ("a()", "b()")),
    "P52-list": Case(f"<tool_call>[{python()}, {python('b()')}]</tool_call>", ("a()", "b()")),
    "P52-open": Case(ended(f"<tool_call>{python()}", "stop"), ("a()",)),
    "P52-cut": Case(ended('<tool_call>{"name": "python", "arguments": {"code": "a(', "length"),
                    says="cut off"),
    "P52-cut after it was whole": Case(ended(f"<tool_call>{python()}", "length"), ("a()",)),
    "P52-parameters": Case(
        '<tool_call>{"name": "python", "parameters": {"code": "a()"}}</tool_call>', ("a()",)
    ),
    "P52-no arguments": Case('<tool_call>{"name": "python"}</tool_call>', says="no arguments"),
    "P52-arguments alone": Case('<tool_call>{"code": "a()"}</tool_call>', ("a()",)),
    "P52-code alone": Case("<tool_call>\nimport a\n</tool_call>", ("import a",)),
    "P52-code beside it": Case(
        '<tool_call>{"name": "code_interpreter", "arguments": {"code": ""}}\n<code>\nb()\n</code>\n'
        "</tool_call>", ("b()",),
    ),
    "P52-Qwen's markup": Case(
        "<tool_call>\n<function=python>\n<parameter=code>\na()\nb()\n</parameter>\n</function>\n"
        "</tool_call>", ("a()\nb()",),
    ),
    "P52-markup alone": Case("<function=python>\n<parameter=code>a()</parameter>\n</function>",
                             ("a()",)),
    "P52-markup, cut": Case(ended("<function=python><parameter=code>a()", "stop"), ("a()",)),
    "P52-markup with JSON": Case('<function=python>{"code": "a()"}</function>', ("a()",)),
    "P52-invoke": Case(
        '<function_calls>\n<invoke name="python">\n<parameter name="code">a()\nb()</parameter>\n'
        "</invoke>\n</function_calls>", ("a()\nb()",),
    ),
    "P52-GLM": Case(
        "<tool_call>python\n<arg_key>code</arg_key>\n<arg_value>a()\nb()</arg_value>\n</tool_call>",
        ("a()\nb()",),
    ),
    "P52-GLM, lines": Case(
        "<tool_call>python\n<arg_key>code</arg_key>\n<arg_value>\na()\n</arg_value></tool_call>",
        ("a()",),
    ),
    "P52-GLM, blank": Case(
        "<tool_call>python <arg_key> code </arg_key> <arg_value>a()</arg_value></tool_call>",
        ("a()",),
    ),
    "P52-Mistral": Case({"content": f"[TOOL_CALLS] [{python()}]"}, ("a()",)),
    "P52-Mistral, name first": Case(
        {"content": '[TOOL_CALLS]python[ARGS]{"code": "a()"}'}, ("a()",)
    ),
    "P52-Mistral, blanks": Case(
        {"content": '[TOOL_CALLS]\npython\n[ARGS] {"code": "a()"}'}, ("a()",)
    ),
    "P52-Mistral, two": Case(
        {"content": '[TOOL_CALLS]python{"code": "a()"}[TOOL_CALLS]python{"code": "b()"}'},
        ("a()", "b()"),
    ),
    "P52-Llama": Case("<|python_tag|>import a\nprint(a)<|eom_id|>", ("import a\nprint(a)",)),
    "P52-Llama, JSON": Case(
        '<|python_tag|>{"name": "python", "parameters": {"code": "a()"}}<|eot_id|>', ("a()",)
    ),
    "P52-JSON alone": Case(python(), ("a()",)),
    "P52-JSON alone, list": Case({"content": f"[{python()}, {python('b()')}]"}, ("a()", "b()")),
    "P52-JSON alone, fenced": Case({"content": f"```json\n{python()}\n```"}, ("a()",)),
    "P52-JSON alone, of another's": Case('{"name": "Ann", "arguments": {"code": "a()"}}',
                                         says="No code"),
    "P52-DeepSeek": Case(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>python\n```json\n"
        '{"code": "a()"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>', ("a()",),
    ),
    "P52-DeepSeek, blanks": Case(
        '<｜tool▁call▁begin｜>\nfunction <｜tool▁sep｜> python\n```json\n{"code": "a()"}\n```\n'
        "<｜tool▁call▁end｜>", ("a()",),
    ),
    "P52-DeepSeek 3.1": Case(
        '<｜tool▁call▁begin｜>python<｜tool▁sep｜>{"code": "a()"}<｜tool▁call▁end｜>', ("a()",)
    ),
    "P52-Kimi": Case(
        "<|tool_call_begin|>functions.python:0<|tool_call_argument_begin|>"
        '{"code": "a()"}<|tool_call_end|>', ("a()",),
    ),
    "P52-gpt-oss": Case(
        "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.python <|constrain|>json<|message|>{"code": "a()"}<|call|>', ("a()",),
        reasoning="so",
    ),
    "P52-gpt-oss, raw": Case("<|channel|>commentary to=python<|message|>import a", ("import a",)),
    "P52-Granite": Case(f"<|tool_call|>[{python()}]", ("a()",)),
    "P52-LFM": Case(f"<|tool_call_start|>{python()}<|tool_call_end|>", ("a()",)),
    "P52-function_call": Case(f"<function_call>{python()}</function_call>", ("a()",)),
    "P52-beside an answer": Case(f"<tool_call>{python()}</tool_call><answer>1</answer>",
                                 ("a()",), "1"),
    "P53": Case(called('{"code": "print(\'{\\"open\': )\\nprint(\\"}}\\")"}'),
                ("print('{\"open': )\nprint(\"}}\")",)),
    "P53-as text": Case(f"<tool_call>{python(BRACES)}</tool_call>", (BRACES,)),
    "P53-closed once too often": Case(called('{"code": "a()"}}'), ("a()",)),
    "P53-not closed": Case(called('{"code": "a()"'), says="Expecting ',' delimiter"),
    "P53-quotes not escaped": Case(called('{"code": "print("hi")"}'), says="delimiter: line 1"),
    "object": Case(called({"code": "a()"}), ("a()",)),
    "encoded twice": Case(called(json.dumps(json.dumps({"code": "a()"}))), ("a()",)),
    "encoded twice, blanks": Case(called(json.dumps('\n {"code": "a()"}')), ("a()",)),
    "encoded three times": Case(called(json.dumps(json.dumps(json.dumps({"code": "a()"})))),
                                ("a()",)),
    "escaped as a whole": Case(called(r'{\"code\": \"a()\nb()\"}'), ("a()\nb()",)),
    "Python's spelling": Case(called("{'code': 'a()', 'more': True, 'x': None,}"), ("a()",)),
    "a comma too many": Case(called('{"code": "a()",}'), ("a()",)),
    "triple quotes": Case(called('{"code": """a()\nb("x")"""}'), ('a()\nb("x")',)),
    "an expression": Case(called('{"code": print("hi")}'), says="not valid JSON"),
    "raw newlines": Case(called('{"code": "a()\nb()\tc"}'), ("a()\nb()\tc",)),
    "byte order mark": Case(called('\ufeff{"code": "a()"}'), ("a()",)),
    "not a number": Case(called('{"code": "a()", "t": NaN}'), ("a()",)),
    "a long number": Case(called('{"code": "a()", "t": ' + "9" * 5000 + "}"), ("a()",)),
    "two objects": Case(called('{"code": "a()"}{"code": "b()"}'), says="Extra data"),
    "words after": Case(called('{"code": "a()"} done'), says="Extra data"),
    "lines": Case(called({"code": ["a()", "b()"]}), ("a()\nb()",)),
    "bare lines": Case(called(["a()", "b()"]), ("a()\nb()",)),
    "bare lines for another": Case(called(["a()", "b()"], "search"), says="no function `search`"),
    "bare lines of other things": Case(called(["a()", 5]), says="no string `code`"),
    "bare code": Case(called("import os\nprint(os)"), ("import os\nprint(os)",)),
    "bare code with a magic": Case(called("%matplotlib inline\nplot()"),
                                   ("%matplotlib inline\nplot()",)),
    "bare words": Case(called("please run it"), says="not valid JSON"),
    "bare code for another": Case(called("import os\nprint(os)", "search"), says="not valid JSON"),
    "a bare string": Case(called('"print(1)"'), ("print(1)",)),
    "two without arguments": Case(
        {"tool_calls": [{"function": {"name": "python"}}, {"function": {"name": "py"}}]},
        says='{"code": "…"}. The call of `py` had no arguments.',
    ),
    "null": Case(called(None), says="had no arguments"),
    "empty": Case(called(""), says="had no arguments"),
    "blank": Case(called(" \n"), says="had no arguments"),
    "empty object": Case(called("{}"), says="had no string `code`. Call"),
    "the word null": Case(called("null"), says="not an object"),
    "a number": Case(called("5"), says="not an object"),
    "empty code": Case(called({"code": " "}), says="The `code` of the call was empty"),
    **{
        f"code is {value}": Case(called({"code": value}), says="It had: code.")
        for value in (None, 5, True, {"x": 1}, [], [1])
    },
    **{
        f"key {key}": Case(called({key: "print(1)"}), ("print(1)",))
        for key in ("script", "source", "input", "python", "command", "cmd", "query",
                    "text", "program", "cell", "python_code", "Code", " CODE")
    },
    "code before other keys": Case(called({"input": "a()", "script": "b()", "code": "c()"}),
                                   ("c()",)),
    "a command of a shell": Case(called({"command": "python -c 'x'"}), says="It had: command."),
    "keys with breaks": Case(called({"a\nb": 1}), says="It had: a b."),
    **{
        f"nested in {key}": Case(called({"name": "python", key: {"code": "a()"}}), ("a()",))
        for key in ("arguments", "parameters", "input", "kwargs")
    },
    "nested as text": Case(called({"arguments": '{"code": "a()"}'}), ("a()",)),
    **{
        f"named {name}": Case(called({"script": "a()"}, name), ("a()",))
        for name in (
            "python", "functions.python", "default_api.python", "mcp__box__python", "run_python",
            "execute_code", "ipython", "python_repl", "PythonInterpreter", "code_interpreter",
            "jupyter_cell", "functions.python:0", " python ", "exec",
        )
    },
    **{
        f"named {name or 'nothing'}": Case(called({"script": "a()"}, name), says="no function")
        for name in ("search", "container.exec", "browser", "", "code_search", "zip")
    },
    "any name with code": Case(called({"code": "a()"}, "look_closer"), ("a()",)),
    "several": Case(
        {
            "tool_calls": [
                {"id": "a", "function": {"name": "python", "arguments": '{"code": "a()"}'}},
                {"id": "b", "function": {"name": "zoom", "arguments": '{"box": 1}'}},
                {"id": "c", "function": {"name": "python", "arguments": '{"code": "c()"}'}},
            ]
        },
        ("a()", "c()"),
    ),
    "cut in the code": Case({"finish_reason": "length", "message": called('{"code": "a()\nb(')},
                            says="cut off"),
    "cut, yet whole": Case({"finish_reason": "length", "message": called('{"code": "a()"}')},
                           ("a()",)),
    "function_call": Case(
        {"content": None, "function_call": {"name": "python", "arguments": '{"code": "a()"}'}},
        ("a()",),
    ),
    "flat": Case({"tool_calls": [{"id": "x", "name": "python", "arguments": {"code": "a()"}}]},
                 ("a()",)),
    "parameters": Case(
        {"tool_calls": [{"function": {"name": "python", "parameters": {"code": "a()"}}}]}, ("a()",)
    ),
    "custom": Case({"tool_calls": [{"custom": {"name": "python", "input": "a()"}}]}, ("a()",)),
    "one call, no list": Case(
        {"tool_calls": {"function": {"name": "python", "arguments": {"code": "a()"}}}}, ("a()",)
    ),
    "calls as text": Case(
        {"tool_calls": json.dumps([{"name": "python", "arguments": {"code": "a()"}}])}, ("a()",)
    ),
    "tool_use": Case(
        {
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "t", "name": "python", "input": {"code": "a()"}},
            ]
        },
        ("a()",),
    ),
    "no calls, a block": Case({"content": "```python\nx()\n```", "tool_calls": []}, ("x()",)),
    "in the reasoning": Case(
        ended("", "stop", reasoning=f"<tool_call>{python()}</tool_call>"), says="cut in reasoning",
        reasoning=f"<tool_call>{python()}</tool_call>",
    ),
}  # fmt: skip

MESSAGES = {
    "P56": Case(
        {
            "finish_reason": "stop",
            "message": {"content": None, "refusal": "I can't help with identifying this."},
        },
        says="The model refused: I can't help with identifying this.",
    ),
    "P56-part": Case({"content": [{"type": "refusal", "refusal": "No."}]}, says="refused: No."),
    "P56-bare": Case({"role": "assistant", "refusal": "No."}, says="refused: No."),
    "P56-completion": Case({"choices": [ended("", "stop", refusal="No.")]}, says="refused: No."),
    "P56-empty": Case({"content": "well", "refusal": ""}, says="No code"),
    "P56-null": Case({"content": "<answer>1</answer>", "refusal": None}, (), "1"),
    "P56-beside an answer": Case({"content": "<answer>1</answer>", "refusal": "No."}, (), "1"),
    "P56-in words": Case("I'm sorry, I can't help with that.", says="No code and no answer"),
    "parts": Case({"content": [{"type": "text", "text": "a"}, {"type": "text", "text":
                                "<answer>1</answer>"}]}, (), "1"),
    "parts of an output": Case({"content": [{"type": "output_text", "text": "<answer>1</answer>"}]},
                               (), "1"),
    "bare texts": Case({"content": ["<answer>1</answer>"]}, (), "1"),
    "one part, no list": Case({"content": {"type": "text", "text": "<answer>1</answer>"}}, (), "1"),
    "odd parts": Case({"content": [None, 5, {"type": "image_url"}, {"text": "<answer>1</answer>"}]},
                      (), "1"),
    "thinking parts": Case(
        {"content": [{"type": "thinking", "thinking": "hmm"}, {"text": "<answer>1</answer>"}]},
        (), "1", reasoning="hmm",
    ),
    "thinking parts in parts": Case(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]},
                {"type": "text", "text": "<answer>1</answer>"},
            ]
        },
        (), "1", reasoning="hmm",
    ),
    "reasoning_content": Case({"content": "<answer>1</answer>", "reasoning_content": THOUGHT},
                              (), "1", reasoning=THOUGHT),
    "reasoning": Case({"content": "<answer>1</answer>", "reasoning": THOUGHT}, (), "1",
                      reasoning=THOUGHT),
    "reasoning_details": Case(
        {"content": "<answer>1</answer>", "reasoning_details": [{"text": "a"}, {"text": "b"}]},
        (), "1", reasoning="a\nb",
    ),
    "reasoning object": Case({"content": "<answer>1</answer>", "reasoning": {"text": "hmm"}},
                             (), "1", reasoning="hmm"),
    "its own channel wins": Case(
        {"content": "<think>b</think><answer>1</answer>", "reasoning": "a"}, (), "1", reasoning="a"
    ),
    "message as text": Case({"message": "<answer>1</answer>"}, (), "1"),
    "old completion": Case({"choices": [{"text": "<answer>1</answer>"}]}, (), "1"),
    "no choices": Case({"choices": []}, says="Your reply was empty."),
    "null choice": Case({"choices": [None]}, says="Your reply was empty."),
    "null message": Case({"message": None, "finish_reason": "stop"}, says="Your reply was empty."),
    "an error": Case({"error": {"message": "boom"}}, says="No code"),
    "long number": Case(
        '{"content": "<answer>1</answer>", "created": ' + "9" * 5000 + "}", (), "1"
    ),
}  # fmt: skip

CASES = {**FENCES, **ANSWERS, **CALLS, **MESSAGES}


@pytest.mark.parametrize("name", CASES)
def test_reading(name: str) -> None:
    case = CASES[name]
    source = case.source if isinstance(case.source, str) else json.dumps(case.source)
    (reply,) = replies(source)
    found = describe(reply)
    assert (found["code"], found["answer"]) == (list(case.code), case.answer), found
    assert (found["malformed"] is None) == (not case.says), found
    assert case.says in (found["malformed"] or "")
    assert found["reasoning"] == case.reasoning


def test_no_case_hides_another() -> None:
    assert len(CASES) == len(FENCES) + len(ANSWERS) + len(CALLS) + len(MESSAGES)
