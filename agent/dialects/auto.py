"""Reading a reply whose dialect is not known: for transcripts, not for runs.

Native calls win; else `<tool_call>` or `<code>`; else fences. An element that begins inside of a
fence is part of that block.
"""

from __future__ import annotations

import bisect

from agent.dialects import fences, reading, tagged
from agent.dialects.tools import Tools
from agent.messages import Action, Reply

_HOW = "Expected a tool call, a <code> element, a ```python block or <answer>…</answer>."


def read(reply: Reply) -> tuple[Action, ...]:
    """As `Dialect.read`."""
    if reply.tool_calls:
        return Tools().read(reply)
    text = reading.visible(reply)
    pieces = tagged.pieces(text, reply.finish_reason)
    elements = _outside(pieces, fences.blocks(text)) if pieces else []
    found = reading.from_pieces(elements)
    if not found.runs:
        fenced = reading.fenced_code(text, reply.finish_reason)
        found = fenced if fenced.runs or not found.hints else found
    return reading.actions(reply, text, found, _HOW)


def _outside(
    pieces: tuple[tagged.Piece, ...], blocks: tuple[fences.Block, ...]
) -> list[tagged.Piece]:
    starts = [block.start for block in blocks]
    ends = [-1, *(block.end for block in blocks)]
    return [piece for piece in pieces if piece.start >= ends[bisect.bisect(starts, piece.start)]]
