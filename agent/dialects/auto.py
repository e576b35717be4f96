"""Reading a reply whose dialect is not known: for transcripts, not for runs.

Native calls win; else `<tool_call>` or `<code>`; else fences. An element that begins inside of a
fence is part of that block.
"""

from __future__ import annotations

from agent.dialects import reading, tagged
from agent.dialects.tools import Tools
from agent.messages import Action, Reply
from benchmarks import fences

_HOW = "Expected a tool call, a <code> element, a ```python block or <answer>…</answer>."


def read(reply: Reply) -> tuple[Action, ...]:
    """As `Dialect.read`."""
    if reply.tool_calls:
        return Tools().read(reply)
    text, end = reading.visible(reply), reply.finish_reason
    pieces = tagged.pieces(text, end, fences.blocks(text))
    elements = reading.Found(reading.outside_answers(text, pieces, end))
    fenced = reading.fenced_code(text, end)
    ways = (elements, fenced, reading.left_calls(text, end))
    found = next((way for way in ways if way.runs), None)
    found = found or next((way for way in ways if way.hints), fenced)
    return reading.actions(reply, text, found, _HOW)
