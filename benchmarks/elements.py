"""Elements in a reply that are no words to us: code between tags, calls that a server left as text,
outputs that the model made up.

Each family of models writes calls with marks of its own; a server whose tool parser fails passes
them through as text. What stands in an element is for others to read. Linear in the length of the
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.fences import Block

Kind = Literal[
    "code", "tool_call", "function", "invoke", "marked", "channel", "python_tag", "listed", "output"
]
_END = r"\Z"
_KINDS: dict[Kind, tuple[str, str]] = {
    # kind: (what opens it, what closes it; `{name}` is what the opening's group said)
    "code": (r"<code(?:\s[^<>]{0,100})?>", r"</\s{0,9}code\s{0,9}>"),
    "tool_call": (  # Hermes, Qwen, GLM, LFM
        r"<(?:tool_call|function_?call)\s{0,9}>|<\|tool_call_start\|>|<\|tool_call\|>",
        r"</(?:tool_call|function_?call)\s{0,9}>|<\|tool_call_end\|>|<\|/tool_call\|>",
    ),
    "function": (r"<function=[^<>\n]{1,80}>", r"</function\s{0,9}>"),
    "invoke": (  # Claude, MiniMax, DeepSeek 3.2
        r"<(?:[\w:｜|]{1,20})?invoke\s{1,9}name=[^<>\n]{1,80}>",
        r"</(?:[\w:｜|]{1,20})?invoke\s{0,9}>",
    ),
    "marked": (  # DeepSeek, Kimi
        r"<[|｜]tool[_▁]call[_▁]begin[|｜]>",
        r"<[|｜]tool[_▁]call[_▁]end[|｜]>",
    ),
    "channel": (  # gpt-oss
        r"<\|channel\|>commentary[^<>]{0,20} to=[^<>]{1,80}"
        r"(?:<\|constrain\|>\w{1,20})?<\|message\|>",
        r"<\|call\|>|<\|end\|>|(?=<\|channel\|>)",
    ),
    "python_tag": (r"<\|python_tag\|>", r"<\|e(?:om|ot)_id\|>"),  # Llama
    "listed": (r"\[TOOL_CALLS\]", r"(?=\[TOOL_CALLS\])|</s>"),  # Mistral
    "output": (
        r"<(?:interpreter|tool_response|sandbox_output|observation)\s{0,9}>",
        r"</(?:interpreter|tool_response|sandbox_output|observation)\s{0,9}>",
    ),
}
_OPENS = re.compile(
    "|".join(f"(?P<{kind}>{opens})" for kind, (opens, _) in _KINDS.items()), re.IGNORECASE
)
_CLOSES = {kind: re.compile(closes, re.IGNORECASE) for kind, (_, closes) in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Element:
    """One element; `text[start:end]` is all of it, marks included."""

    start: int
    end: int
    kind: Kind
    head: str
    """The opening mark as written."""
    inner: str
    closed: bool


def elements(text: str, blocks: Sequence[Block] = ()) -> Iterator[Element]:
    """Every element in order; other marks inside of one are its content. One that is not closed
    goes on to the end; an output that is not closed is none.

    What stands in one of these fenced blocks opens no element. Nor is a block what begins inside of
    an element.
    """
    at, block, endless_output = 0, 0, False
    while (opened := _OPENS.search(text, at)) is not None:
        while block < len(blocks) and (
            blocks[block].start < at or blocks[block].end <= opened.start()
        ):
            block += 1
        if block < len(blocks) and blocks[block].start < opened.start():
            at = blocks[block].end
            continue
        kind: Kind = opened.lastgroup  # pyright: ignore
        at = opened.end()
        if kind == "output" and endless_output:
            continue
        closed = _CLOSES[kind].search(text, at)
        if closed is None and kind == "output":
            endless_output = True
            continue
        inner_end, end = closed.span() if closed else (len(text), len(text))
        inner = text[at:inner_end]
        yield Element(opened.start(), end, kind, opened.group(), inner, closed is not None)
        at = end
