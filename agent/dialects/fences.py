"""Code fences in a reply: where they are, how they are labelled, what stands in them.

The rules are CommonMark's, loosened where models are careless and the meaning is plain: any indent,
a list mark or prose before the fence, code on the fence's own line, a closing fence at the end of a
code line. A fence with an info string never closes a block. Linear in the length of the text.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from agent.dialects.syntax import compiles, looks_like_python

PYTHON = frozenset({"python", "py", "ipython", "tool_code"})
"""Labels that mean: run this. Case, version digits and what follows (`{.cell}`) do not matter."""

_FENCE_LINE = re.compile(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})(.*)", re.DOTALL)
_TICKS = re.compile(r"`+")
_LABEL = re.compile(r"[ \t]*\{?\.?([^\s:{}=,]+)")


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


def blocks(text: str) -> tuple[Block, ...]:
    """Every fenced block in order; blocks do not overlap."""
    lines = text.split("\n")
    found: list[Block] = []
    row, offset = 0, 0
    while row < len(lines):
        opening = _opening(lines[row])
        if opening is None:
            found += _inline(lines[row], offset)
            offset += len(lines[row]) + 1
            row += 1
            continue
        body = _body(lines, row + 1, opening)
        begin = offset + opening.column
        offset += sum(len(line) + 1 for line in lines[row : body.next_row])
        end = min(offset - 1 - body.left_over, len(text))
        code = _code([opening.first, *body.lines] if opening.first else body.lines, opening.indent)
        found.append(Block(begin, end, opening.label, code, body.closed))
        row = body.next_row
    return tuple(found)


def unwrapped(code: str) -> str:
    """The inside of a text that is one fenced block and nothing else; other text as it is."""
    if not code.lstrip().startswith(("```", "~~~")):
        return code
    found = blocks(code)
    if len(found) == 1 and not code[: found[0].start].strip() and not code[found[0].end :].strip():
        return found[0].code
    return code


@dataclass(frozen=True, slots=True)
class _Opening:
    column: int
    indent: int
    mark: str
    label: str
    first: str
    """Code on the fence's own line."""


@dataclass(frozen=True, slots=True)
class _Body:
    lines: list[str]
    next_row: int
    closed: bool
    left_over: int = 0
    """Characters after the closing fence on its line: prose, no part of the block."""


def _label(info: str) -> str:
    match = _LABEL.match(info)
    return match.group(1).lower().rstrip("0123456789.") if match else ""


def _opening(line: str) -> _Opening | None:
    """The fence that begins a block with this line, if one does."""
    match = _FENCE_LINE.match(line)
    if match is not None and (match.group(2)[0] == "~" or "`" not in match.group(3)):
        lead, mark, info = match.groups()
        return _Opening(len(lead), len(lead), mark, _label(info), _code_after_label(info))
    return _opening_after_prose(line)


def _opening_after_prose(line: str) -> _Opening | None:
    """A fence after prose, as in `Code: ```python`; only with a Python label."""
    runs = [run for run in _TICKS.finditer(line) if len(run.group()) >= 3]
    if len(runs) % 2 == 0:  # none, or pairs: inline code, ended on this line
        return None
    info = line[runs[-1].end() :]
    if "`" in info or _label(info) not in PYTHON:
        return None
    code = _code_after_label(info)
    return _Opening(runs[-1].start(), 0, runs[-1].group(), _label(info), code)


def _code_after_label(info: str) -> str:
    """What follows a Python label on its line and is code rather than an attribute."""
    match = _LABEL.match(info)
    rest = info[match.end() :].strip() if match and _label(info) in PYTHON else ""
    return rest if rest and looks_like_python(rest) else ""


def _body(lines: list[str], row: int, opening: _Opening) -> _Body:
    tried = opening.label not in PYTHON
    for at in range(row, len(lines)):
        line = lines[at].strip()
        if line.startswith(opening.mark):
            rest = line.lstrip(opening.mark[0]).lstrip()
            if not rest or rest.startswith("<"):  # a tag is no info string: `` ```<answer>…``
                spare = len(lines[at]) - len(lines[at].rstrip()) if rest else 0
                return _Body(lines[row:at], at + 1, closed=True, left_over=len(rest) + spare)
        elif line.endswith(opening.mark) and not tried:
            # Once a block, so that the time stays linear: a code line that the fence was glued to.
            tried = True
            glued = [*lines[row:at], lines[at].rstrip().rstrip(opening.mark[0])]
            if compiles(_code(glued, opening.indent)):
                return _Body(glued, at + 1, closed=True)
    last = next((at for at in range(len(lines), row, -1) if lines[at - 1].strip()), row)
    return _Body(lines[row:last], len(lines), closed=False)


def _code(lines: list[str], indent: int) -> str:
    """Without the fence's own indent and whatever indent all lines share; LF line ends."""
    cut = [line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    code = "\n".join(line.removesuffix("\r") for line in cut)
    return textwrap.dedent(code) if code.lstrip("\n")[:1] in (" ", "\t") else code


def _inline(line: str, offset: int) -> Iterator[Block]:
    """Fence, Python label, code and fence on one line."""
    runs = list(_TICKS.finditer(line))
    at = 0
    while at < len(runs):
        mark = runs[at].group()
        end = next((n for n in range(at + 1, len(runs)) if runs[n].group() == mark), None)
        if end is None:
            at += 1
            continue
        inside = line[runs[at].end() : runs[end].start()]
        label = _LABEL.match(inside)
        if len(mark) >= 3 and label is not None and _label(inside) in PYTHON:
            code = inside[label.end() :].strip()
            begin = offset + runs[at].start()
            yield Block(begin, offset + runs[end].end(), _label(inside), code, closed=True)
        at = end + 1
