"""Code fences in a reply: where they are, how they are labelled, what stands in them.

The rules are CommonMark's, loosened where models are careless and the meaning is plain: any
indent, a list mark, a quote mark or prose before the fence, code on the fence's own line, a closing
fence at the end of a code line or before more prose. A fence with an info string closes no block,
nor does one inside a triple-quoted string that ends within the block. Linear in the text's length.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from benchmarks import fence_lines
from benchmarks.fence_lines import OTHER_PROGRAMS, PYTHON, Opening
from benchmarks.syntax import compiles, ends_in_string

_MOST_PASSED = 3
"""Closing fences inside a string that one block passes over."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `text[start:end]` is all of it, fences included."""

    start: int
    end: int
    label: str
    """Lower case, without version digits; `""` where there is none."""
    code: str
    closed: bool

    @property
    def is_python(self) -> bool:
        return self.label in PYTHON

    @property
    def is_program(self) -> bool:
        """In Python or another programming language: a span that it prints is no answer."""
        return self.label in PYTHON or self.label in OTHER_PROGRAMS


@lru_cache(maxsize=4)
def blocks(text: str) -> tuple[Block, ...]:
    """Every fenced block in order; blocks do not overlap. The last texts are kept: reading a reply
    asks several times."""
    return tuple(_Reader(text).blocks())


def unwrapped(code: str) -> str:
    """The inside of a text that is one fenced block and nothing else; other text as it is."""
    if not code.lstrip().startswith(("```", "~~~")):
        return code
    found = blocks(code)
    if len(found) == 1 and not code[: found[0].start].strip() and not code[found[0].end :].strip():
        return found[0].code
    return code


@dataclass(frozen=True, slots=True)
class _Body:
    lines: list[str]
    next_row: int
    closed: bool
    left_over: int = 0
    """Characters after the closing fence on its line: prose, no part of the block."""


class _Reader:
    """One pass over the lines of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.longest = {mark: self._longest_closing(mark) for mark in "`~" if mark * 3 in text}
        self.quote_end = self._ends_of_quotes()

    def _longest_closing(self, mark: str) -> list[int]:
        """For every row the length of the longest fence that closes, there or further down: so that
        many fences that nothing closes take no longer than one."""
        longest = [0] * (len(self.lines) + 1)
        for row in range(len(self.lines) - 1, -1, -1):
            bare = self.lines[row].strip()
            closes = (
                bare.startswith(mark) and fence_lines.left_over(self.lines[row], mark) is not None
            )
            fence = len(bare) - len(bare.lstrip(mark)) if closes else 0
            longest[row] = max(longest[row + 1], fence)
        return longest

    def _ends_of_quotes(self) -> list[int]:
        """For every row the first, there or further down, that is not quoted."""
        ends = list(range(len(self.lines) + 1))
        for row in range(len(self.lines) - 1, -1, -1):
            if self.lines[row].lstrip().startswith(">"):
                ends[row] = ends[row + 1]
        return ends

    def blocks(self) -> Iterator[Block]:
        row, offset = 0, 0
        while row < len(self.lines):
            line = self.lines[row]
            fenced = "```" in line or "~~~" in line
            opening = fence_lines.opening(line) if fenced else None
            if opening is None:
                for start, end, label, code in fence_lines.inline(line) if fenced else ():
                    yield Block(offset + start, offset + end, label, code, closed=True)
                offset += len(line) + 1
                row += 1
                continue
            body = self._body(row + 1, opening)
            begin = offset + opening.column
            offset += sum(len(line) + 1 for line in self.lines[row : body.next_row])
            end = min(offset - 1 - body.left_over, len(self.text))
            lines = [opening.first, *body.lines] if opening.first else body.lines
            yield Block(begin, end, opening.label, _code(lines, opening.indent), body.closed)
            row = body.next_row

    def _body(self, row: int, opening: Opening) -> _Body:
        rows, python = self._rows(row, opening), opening.label in PYTHON
        glue_tried = not python
        for at in rows:
            line = fence_lines.unquoted(self.lines[at], opening.quotes)
            left_over = fence_lines.left_over(line, opening.mark)
            if left_over is not None:
                body = self._until(row, at, opening, left_over)
                return self._past_strings(body, row, opening) if python else body
            if line.rstrip().endswith(opening.mark) and not glue_tried:
                glue_tried = True  # once a block, so that the time stays linear
                last = line.rstrip().rstrip(opening.mark[0])
                body = self._until(row, at, opening, 0, last)
                if compiles(_code(body.lines, opening.indent)):
                    return body
            elif not self._closes_later(at, opening):
                left_over = fence_lines.prose(line, opening.mark)
                if left_over:
                    return self._until(row, at, opening, left_over)
        lines = self._unquoted(rows, opening)
        full = next((n for n in range(len(lines), 0, -1) if lines[n - 1].strip()), 0)
        return _Body(lines[:full], rows.stop, closed=rows.stop < len(self.lines))

    def _past_strings(self, body: _Body, row: int, opening: Opening) -> _Body:
        """A longer body, where the fence that closes this one stands in a string that ends before a
        later fence; else this one."""
        later = body
        for _ in range(_MOST_PASSED):
            in_string = ends_in_string(_code(later.lines, opening.indent))
            closing = self._next_closing(later.next_row, opening) if in_string else None
            if closing is None:
                break
            later = self._until(row, closing[0], opening, closing[1])
        return later if compiles(_code(later.lines, opening.indent)) else body

    def _next_closing(self, row: int, opening: Opening) -> tuple[int, int] | None:
        """The next row that closes the block, and how many characters follow in it."""
        for at in self._rows(row, opening):
            if not self._closes_later(at, opening):
                return None
            line = fence_lines.unquoted(self.lines[at], opening.quotes)
            left_over = fence_lines.left_over(line, opening.mark)
            if left_over is not None:
                return at, left_over
        return None

    def _closes_later(self, row: int, opening: Opening) -> bool:
        return opening.quotes > 0 or self.longest[opening.mark[0]][row] >= len(opening.mark)

    def _rows(self, row: int, opening: Opening) -> range:
        """The rows in which the block may end."""
        return range(row, self.quote_end[row] if opening.quotes else len(self.lines))

    def _until(
        self, row: int, at: int, opening: Opening, left_over: int, last: str | None = None
    ) -> _Body:
        """The body that ends in row `at`, with `last` as the code that stands there."""
        lines = self._unquoted(range(row, at), opening)
        lines += [] if last is None else [last]
        return _Body(lines, at + 1, closed=True, left_over=left_over)

    def _unquoted(self, rows: range, opening: Opening) -> list[str]:
        lines = self.lines[rows.start : rows.stop]
        return [fence_lines.unquoted(line, opening.quotes) for line in lines]


def _code(lines: list[str], indent: int) -> str:
    """Without the fence's own indent and whatever indent all lines share; LF line ends."""
    cut = [line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    code = "\n".join(line.removesuffix("\r") for line in cut)
    return textwrap.dedent(code) if code.lstrip("\n")[:1] in (" ", "\t") else code
