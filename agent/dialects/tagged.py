"""Code between tags: `<code>…</code>`, and calls that a server left as text in `<tool_call>…`.

A closing tag that is missing at the end is put back where the reply stopped by itself: servers cut
the stop string off. In a reply that was cut by its length, the code was cut too.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from agent.dialects import arguments
from agent.dialects.fences import unwrapped
from agent.dialects.syntax import compiles

_TAG = re.compile(r"<(/?)(code|tool_call|answer)\s*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Piece:
    """One element; `text[start:end]` is all of it, tags included."""

    start: int
    end: int
    found: arguments.Code | arguments.Hint


def pieces(
    text: str, finish_reason: str | None, names: tuple[str, ...] = ("code", "tool_call")
) -> tuple[Piece, ...]:
    """Every element of these names in order.

    Inside one, other tags are code. A `<code>` right after `<answer>` marks the answer up and is
    not one.
    """
    found: list[Piece] = []
    opened: re.Match[str] | None = None
    answer_end = -1
    for tag in _TAG.finditer(text):
        closing, name = bool(tag.group(1)), tag.group(2).lower()
        if opened is not None:
            if closing and name == opened.group(2).lower():
                found.append(_piece(text, opened, tag.start(), tag.end(), finish_reason))
                opened = None
        elif name == "answer":
            answer_end = -1 if closing else tag.end()
        elif (
            name in names
            and not closing
            and (answer_end < 0 or text[answer_end : tag.start()].strip())
        ):
            opened = tag
    if opened is not None:
        found.append(_piece(text, opened, len(text), len(text), finish_reason))
    return tuple(found)


def _piece(
    text: str, opened: re.Match[str], inner_end: int, end: int, finish_reason: str | None
) -> Piece:
    inner = text[opened.end() : inner_end]
    unclosed = inner_end == end
    cut = unclosed and finish_reason in arguments.CUT
    found: arguments.Code | arguments.Hint
    if opened.group(2).lower() == "tool_call":
        found = arguments.read_text_call(inner, finish_reason if unclosed else "stop")
    elif cut:
        found = arguments.Hint(
            "Your code was cut off at the token limit and was not run. Send shorter code."
        )
    else:
        found = _code(inner)
    return Piece(opened.start(), end, found)


def _code(inner: str) -> arguments.Code | arguments.Hint:
    code = unwrapped(inner).strip("\n")
    if not code.strip():
        return arguments.Hint("The <code> element was empty.")
    if "&" in code and not compiles(code) and compiles(html.unescape(code)):
        return arguments.Code(html.unescape(code))
    return arguments.Code(code)
