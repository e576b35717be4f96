"""From what a model wrote to its answer span: reasoning and code set aside, the last span counts.

Pure, linear in the length of the text, never raises. What a span means is for the benchmark to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_THINK = re.compile(r"<(/?)think\s*>", re.IGNORECASE)
_ANSWER = re.compile(r"<(/?)answer\s*>", re.IGNORECASE)
# Right after an answer tag, `<code>` marks the answer up.
_TAGGED_CODE = re.compile(r"(?<!<answer>)<(/?)(code|tool_call)\s*>", re.IGNORECASE)
_FENCE_LINE = re.compile(
    r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$"
)
_OPENS_AT_END = re.compile(r"(?P<fence>`{3,})[ \t]*(?P<info>[\w.+:-]{1,40})[ \t]*$")
_INLINE = re.compile(r"`{3}[ \t]*(?P<info>[\w.+:-]{1,40})\b[^`\n]*`{3}")
_TAIL = 200
"""Characters at a line's end that are searched for a fence: bounds the work on hostile lines."""

PYTHON_LABELS = frozenset({"python", "python3", "py", "py3", "ipython", "ipython3"})
# A span printed by a program in another language is no answer either, although it will not be run.
_OTHER_PROGRAMS = frozenset(
    (
        "bash",
        "sh",
        "shell",
        "zsh",
        "console",
        "powershell",
        "javascript",
        "js",
        "typescript",
        "ts",
        "c",
        "cpp",
        "c++",
        "csharp",
        "java",
        "kotlin",
        "go",
        "rust",
        "ruby",
        "perl",
        "php",
        "r",
        "julia",
        "matlab",
        "octave",
        "lua",
        "scala",
        "swift",
        "sql",
        "dockerfile",
        "makefile",
    )
)


def answer_span(text: str, finish_reason: str | None) -> str | None:
    """The text of the last answer span, stripped; "" for an empty span, None where there is none.

    Reasoning and executable code blocks are dropped first; a span in an unlabelled or text fence
    counts. The last complete `<answer>…</answer>` is taken, from the innermost open tag; a last tag
    that is unclosed counts only when `finish_reason` is `stop` (servers cut the stop string off).
    """
    visible = without_code(strip_reasoning(text)[0])
    opened: int | None = None
    span: str | None = None
    for tag in _ANSWER.finditer(visible):
        if not tag.group(1):
            opened = tag.end()
        elif opened is not None:
            span, opened = visible[opened : tag.start()], None
    if opened is not None and finish_reason == "stop":
        span = visible[opened:]
    return None if span is None else span.strip()


def strip_reasoning(text: str) -> tuple[str, str | None]:
    """The visible text and the reasoning that stood inline (None where there was none).

    Paired `<think>` blocks, all up to the last unpaired `</think>`, and an unclosed `<think>` with
    everything after it are reasoning. A block that was opened twice and closed once ends where it
    was closed: models name the tag while they think.
    """
    tags = list(_THINK.finditer(text))
    if not tags:
        return text, None
    end = len(text)
    while tags and not tags[-1].group(1):
        end = tags.pop().start()
    depth = 0
    for tag in tags:
        depth = max(depth + (-1 if tag.group(1) else 1), 0)
    return _split(text, tags, end, nested=depth == 0)


def _split(
    text: str, tags: list[re.Match[str]], end: int, *, nested: bool
) -> tuple[str, str | None]:
    pieces: list[tuple[str, bool]] = []
    depth, start, hidden = 0, 0, 0
    for tag in tags:
        pieces.append((text[start : tag.start()], depth == 0))
        start = tag.end()
        if not tag.group(1):
            depth = depth + 1 if nested else 1
        elif depth:
            depth -= 1
        else:
            hidden = len(pieces)
    pieces.append((text[start:end], True))
    pieces.append((_THINK.sub("", text[end:]), False))
    visible = [piece for at, (piece, shown) in enumerate(pieces) if shown and at >= hidden]
    thought = [piece for at, (piece, shown) in enumerate(pieces) if not shown or at < hidden]
    return "".join(visible), "".join(thought).strip() or None


def without_code(text: str) -> str:
    """The text with every executable block replaced by a line break: fences with a programming
    language's label, `<code>` and `<tool_call>` elements (to the end where they are unclosed)."""
    return _without_tagged("\n".join(_lines_outside_programs(text)))


def is_program(info: str) -> bool:
    """Whether a fence's info string names a programming language."""
    words = re.split(r"[^\w+#]", info.strip().lower(), maxsplit=1)
    return words[0] in PYTHON_LABELS or words[0] in _OTHER_PROGRAMS


def _lines_outside_programs(text: str) -> Iterator[str]:
    """Fences as CommonMark has them (closed by a bare fence as long as the opening one), and as
    models write them: opened at the end of a line of prose, closed at the end of a line of code."""
    fence, program = "", False
    for raw in text.split("\n"):
        line = raw.rstrip("\r")
        if not fence:
            fence, program, line = _opens(line)
            yield line
            continue
        after = _after_closing(line, fence, program)
        if not program:
            yield line
        elif after:
            yield after
        if after is not None:
            fence = ""


def _opens(line: str) -> tuple[str, bool, str]:
    """The fence this line opens ("" for none), whether a program is in it, what stays visible."""
    whole = _FENCE_LINE.match(line)
    if whole is not None:
        program = is_program(whole["info"])
        return whole["fence"], program, "" if program else line
    line = _INLINE.sub(lambda found: " " if is_program(found["info"]) else found[0], line)
    tail = _OPENS_AT_END.search(line[-_TAIL:])
    if tail is not None and is_program(tail["info"]):
        return tail["fence"], True, line[: max(len(line) - _TAIL, 0) + tail.start()]
    return "", False, line


def _after_closing(line: str, fence: str, program: bool) -> str | None:
    """What follows the closing fence on its line; None where the line does not close the block. A
    fence with an info string does not; a tag is no info string."""
    bare = line.strip()
    if bare.startswith(fence):
        rest = bare.lstrip(fence[0]).strip()
        return rest if not rest or rest.startswith("<") else None
    return "" if program and bare.endswith(fence) else None


def _without_tagged(text: str) -> str:
    kept: list[str] = []
    start, inside = 0, ""
    for tag in _TAGGED_CODE.finditer(text):
        name = tag.group(2).lower()
        if not inside and not tag.group(1):
            kept.append(text[start : tag.start()])
            inside = name
        elif inside == name and tag.group(1):
            kept.append("\n")
            start, inside = tag.end(), ""
    if not inside:
        kept.append(text[start:])
    return "".join(kept)
