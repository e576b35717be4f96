"""From what a model wrote to its answer span: reasoning and code set aside, the last span counts.

Pure, linear in the length of the text, never raises. What a span means is for the benchmark to say.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.elements import elements
from benchmarks.fences import blocks
from benchmarks.reasoning import strip_reasoning
from benchmarks.syntax import looks_like_python

_ANSWER = re.compile(r"<(?:/\s{0,9})?answer(?:\s[^<>/]{0,200})?>", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[\W_]{0,9}(?:(?:your|the|my|final)\s{1,9}){0,3}answer(?:\s{1,9}(?:goes\s{1,9})?here)?[\W_]{0,9}"
    r"|[.…\s]{0,9}(?:…|\.\.)[.…\s]{0,9}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a text that is code, or an output that the model made up."""

    start: int
    end: int
    computes: bool
    """Whether it would do something. What would not, and stands in an answer, is markup there."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found of answers in a text."""

    span: str | None
    """As written, white space included; None where there is none."""
    markup: frozenset[int]
    """The starts of the stretches that are part of an answer and no code."""


def answer_span(text: str, finish_reason: str | None) -> str | None:
    """The text of the last answer span, stripped; "" for an empty span, None where there is none.

    Reasoning and executable code blocks are dropped first; a span in an unlabelled or text fence
    counts. The last complete `<answer>…</answer>` is taken, from the innermost open tag; a last tag
    that is unclosed counts only when `finish_reason` is `stop` (servers cut the stop string off).
    """
    span = raw_span(text, finish_reason)
    return None if span is None else span.strip()


def raw_span(text: str, finish_reason: str | None) -> str | None:
    """As `answer_span`, with the white space: what tells a blank span from an empty one."""
    visible = strip_reasoning(text)[0]
    return read_answer(visible, set_aside(visible), finish_reason).span


def is_placeholder(span: str) -> bool:
    """Whether it repeats what a prompt says of the form: `your answer here`, `…`."""
    return _PLACEHOLDER.fullmatch(span) is not None


def set_aside(text: str) -> tuple[Stretch, ...]:
    """Blocks with a programming language's label, elements with code, calls or outputs: in order,
    not overlapping. Reasoning must be gone from the text."""
    programs = [block for block in blocks(text) if block.is_program]
    found = [
        Stretch(block.start, block.end, block.is_python and looks_like_python(block.code))
        for block in programs
    ]
    found += [
        Stretch(each.start, each.end, each.kind != "code" or looks_like_python(each.inner))
        for each in elements(text, programs)
    ]
    return apart(found)


def apart(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """The stretches in order, without those that begin inside of another."""
    kept: list[Stretch] = []
    for stretch in sorted(stretches, key=lambda each: each.start):
        if not kept or stretch.start >= kept[-1].end:
            kept.append(stretch)
    return tuple(kept)


def read_answer(text: str, aside: tuple[Stretch, ...], finish_reason: str | None) -> Reading:
    """The answer in a text whose reasoning is gone; `aside` as `set_aside` gives it.

    Of several spans the last counts that is no placeholder. Where a gateway escaped the tags, they
    are read all the same.
    """
    if _ANSWER.search(text) is None:
        text, aside = html.unescape(_without(text, aside, 0, len(text))), ()
    spans: list[str] = []
    markup: set[int] = set()
    opened: int | None = None
    at, first = 0, 0
    for tag in _ANSWER.finditer(text):
        while at < len(aside) and aside[at].start < tag.end():
            at += 1
        if at and tag.start() < aside[at - 1].end:
            continue
        if tag.group()[1] != "/":
            opened, first = tag.end(), at
        elif opened is not None:
            inside = aside[first:at]
            code = [each for each in inside if each.computes]
            span = _without(text, code, opened, tag.start())
            opened = None
            if span.strip() or not code:
                spans.append(span)
                markup |= {each.start for each in inside if not each.computes}
    if opened is not None and finish_reason == "stop":
        spans.append(_without(text, aside[first:], opened, len(text)))
    meant = [span for span in spans if not is_placeholder(span)]
    return Reading((meant or spans or [None])[-1], frozenset(markup))


def _without(text: str, stretches: Iterable[Stretch], start: int, end: int) -> str:
    """`text[start:end]` with a line break for each stretch."""
    kept: list[str] = []
    for stretch in stretches:
        kept.append(text[start : stretch.start])
        start = stretch.end
    return "\n".join([*kept, text[start:end]])
