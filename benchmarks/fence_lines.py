"""One line of a reply and its code fence: what opens a block, what closes it, its label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.syntax import looks_like_python

PYTHON = frozenset(
    {"python", "py", "ipython", "jupyter", "python-exec", "python_code", "tool_code"}
)
"""Labels that mean: run this. Case, version digits and what follows (`{.cell}`) do not matter."""
_OTHERS = (
    "bash sh shell zsh console powershell javascript js typescript ts c cpp c++ csharp java kotlin "
    "go rust ruby perl php r julia matlab octave lua scala swift sql dockerfile makefile"
)
OTHER_PROGRAMS = frozenset(_OTHERS.split())
"""Labels of code in other languages: not to be run, and what it prints is no answer."""
_QUOTES = re.compile(r"(?:[ \t]*>)+")
_FENCE_LINE = re.compile(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})(.*)", re.DOTALL)
_TICKS = re.compile(r"`+")
_MARKS = re.compile(r"`+|~{3,}")
_LABEL = re.compile(r"[ \t]*\{?\.?(?:code-cell\}[ \t]*)?([^\s:{}=,]+)")
_GLUED_LABEL = re.compile(r"[ \t]*python(?=[a-z_])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Opening:
    """What the line that opens a block says of it."""

    column: int
    indent: int
    quotes: int
    """Quote marks before it; a line without any ends the block."""
    mark: str
    label: str
    first: str
    """Code on the fence's own line."""


def left_over(line: str, mark: str) -> int | None:
    """Where a line closes a block: how many characters of it follow. A fence with an info string
    does not close; a tag is no info string (`` ```<answer>…``)."""
    bare = line.strip()
    if not bare.startswith(mark):
        return None
    rest = bare.lstrip(mark[0]).lstrip()
    if not rest:
        return 0
    return len(rest) + len(line) - len(line.rstrip()) if rest.startswith("<") else None


def prose(line: str, mark: str) -> int:
    """How many characters follow a fence that has a sentence after it; 0 for other lines."""
    bare = line.lstrip()
    rest = bare.lstrip(mark[0]).strip()
    if not bare.startswith(mark) or " " not in rest or _split(rest)[0] in PYTHON:
        return 0
    return len(bare.lstrip(mark[0]).lstrip())


def _split(info: str) -> tuple[str, str]:
    """The label of an info string and what follows it on its line."""
    match = _LABEL.match(info)
    if match is None:
        return "", ""
    label = match.group(1).lower().rstrip("0123456789.")
    glued = None if label in PYTHON else _GLUED_LABEL.match(info)
    if glued is not None and looks_like_python(info[glued.end() :].strip()):
        return "python", info[glued.end() :].strip()
    return label, info[match.end() :].strip()


def opening(line: str) -> Opening | None:
    """The fence that begins a block with this line, if one does."""
    quotes = _QUOTES.match(line)
    skipped = quotes.end() if quotes else 0
    match = _FENCE_LINE.match(line, skipped)
    if match is None:
        return _opening_after_prose(line)
    lead, mark, info = match.groups()
    if ("`" if mark[0] == "`" else mark) in info:  # a block on one line, or inline code
        return _opening_after_prose(line)
    count = quotes.group().count(">") if quotes else 0
    return Opening(skipped + len(lead), len(lead), count, mark, *_label_and_code(info))


def _opening_after_prose(line: str) -> Opening | None:
    """A fence after prose, as in `Code: ```python`; only with a Python label."""
    runs = [run for run in _TICKS.finditer(line) if len(run.group()) >= 3]
    if len(runs) % 2 == 0:  # none, or pairs: inline code, ended on this line
        return None
    info = line[runs[-1].end() :]
    label, code = _label_and_code(info)
    if "`" in info or label not in PYTHON:
        return None
    return Opening(runs[-1].start(), 0, 0, runs[-1].group(), label, code)


def _label_and_code(info: str) -> tuple[str, str]:
    """The label, and what follows a Python label and is code rather than an attribute."""
    label, rest = _split(info)
    return label, rest if label in PYTHON and looks_like_python(rest) else ""


def unquoted(line: str, quotes: int) -> str:
    """The line without its first quote marks."""
    for _ in range(quotes):
        line = line.lstrip(" \t").removeprefix(">")
    return line


def inline(line: str) -> Iterator[tuple[int, int, str, str]]:
    """Fence, Python and fence on one line, as start, end, label and code; without a label only what
    is plainly Python."""
    runs = list(_MARKS.finditer(line))
    partners, at = _partners(runs), 0
    while at < len(runs):
        end = partners[at]
        if not end:
            at += 1
            continue
        inside = line[runs[at].end() : runs[end].start()]
        if len(runs[at].group()) >= 3:
            label, code = _split(inside)
            if label not in PYTHON:
                label, code = "", inside.strip()
            if label or looks_like_python(code):
                yield runs[at].start(), runs[end].end(), label, code
        at = end + 1


def _partners(runs: list[re.Match[str]]) -> list[int]:
    """For every run of ticks the next one of the same length; 0 where there is none."""
    partners, following = [0] * len(runs), dict[str, int]()
    for at in range(len(runs) - 1, -1, -1):
        partners[at] = following.get(runs[at].group(), 0)
        following[runs[at].group()] = at
    return partners
