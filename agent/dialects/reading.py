"""What the dialects share: reasoning set aside, code located in a reply's text, then the answer.

Each reader of code returns `Found`; `actions` puts code and answer together. Everything is pure and
takes any text.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agent.dialects import arguments, tagged
from agent.dialects.arguments import Code, Hint
from agent.dialects.repair import meant
from agent.dialects.tagged import Piece
from agent.messages import Action, Answer, Malformed, Reply, Run, ToolCall
from benchmarks import fences
from benchmarks.answers import Stretch, apart, read_answer, set_aside
from benchmarks.reasoning import strip_reasoning
from benchmarks.syntax import looks_like_python

_TORN_TAGS = frozenset(
    piece
    for tag in ("<think>", "</think>")
    for at in range(len(tag))
    for piece in (tag[: at + 1], tag[at:])
)
"""All there is to see when a stop string fired, or a server's parser split, inside the thinking."""
ANSWER_FORM = "give the final answer as <answer>…</answer>"
CUT_HINT = (
    "Your reply was cut off at the token limit before any code or answer was complete. "
    f"Be brief: send short code, or {ANSWER_FORM}."
)
CUT_IN_REASONING = (
    "Your reply ended in the reasoning (cut in reasoning), before any code or answer. "
    f"Think less: send short code, or {ANSWER_FORM}."
)


@dataclass(frozen=True, slots=True)
class Found:
    """Code in a text: its stretches in order, and why there is none to run."""

    pieces: tuple[Piece, ...] = ()
    hint: str = ""
    called: tuple[Code | Hint, ...] = ()
    """What native calls beside the text ask for."""

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run(code.text) for code in self._found if isinstance(code, Code))

    @property
    def hints(self) -> tuple[str, ...]:
        hints = (hint.text for hint in self._found if isinstance(hint, Hint))
        return (*hints, self.hint) if self.hint else tuple(hints)

    @property
    def _found(self) -> list[Code | Hint]:
        return [*self.called, *(each for piece in self.pieces for each in piece.found)]


def visible(reply: Reply) -> str:
    """The reply's text without the reasoning that stands in it."""
    return strip_reasoning(reply.text)[0]


def thinking(reply: Reply) -> str | None:
    """The reasoning: from its own channel, else from the text, else None."""
    return reply.reasoning or strip_reasoning(reply.text)[1]


def cut_in_reasoning(reply: Reply) -> bool:
    """Whether the reply ended before the model had begun to say anything to us: all its tokens went
    into thinking, or a stop string fired in it. Such a reply has neither code nor answer."""
    if reply.tool_calls or reply.refusal:
        return False
    seen = visible(reply)
    if not seen.strip():
        return thinking(reply) is not None
    return seen.strip().lower() in _TORN_TAGS


def run(code: str, call_id: str | None = None) -> Run:
    """A `Run` whose text can be encoded: lone surrogates, which JSON allows, become `?`."""
    return Run(code.encode("utf-8", "replace").decode("utf-8"), call_id)


def fenced_code(text: str, finish_reason: str | None) -> Found:
    """Blocks with a Python label; where there is none, unlabelled ones that are plainly Python."""
    found = fences.blocks(text)
    chosen = [block for block in found if block.is_python]
    if not chosen:
        chosen = [b for b in found if not b.label and b.closed and looks_like_python(b.code)]
    pieces = outside_answers(text, (_block(b, finish_reason) for b in chosen), finish_reason)
    hint = ""
    if pieces and not any(piece.found for piece in pieces):
        hint = "The code block was empty."
    elif found and not chosen:
        labels = ", ".join(sorted({block.label or "no label" for block in found}))
        hint = f"Only ```python blocks are run; found: {labels[:80]}."
    return Found(pieces, hint)


def _block(block: fences.Block, finish_reason: str | None) -> Piece:
    computes = block.is_python and looks_like_python(block.code)
    code = meant(block.code)
    found: tuple[Code | Hint, ...] = (Code(code),) if code.strip() else ()
    if not block.closed and finish_reason in arguments.CUT:
        found = (Hint(tagged.CUT_CODE),)
    return Piece(Stretch(block.start, block.end, computes), found)


def tagged_code(text: str, finish_reason: str | None) -> Found:
    """`<code>` elements and calls that a server left as text."""
    pieces = outside_answers(text, tagged.pieces(text, finish_reason), finish_reason)
    return (
        Found(pieces) if any(piece.found for piece in pieces) else left_calls(text, finish_reason)
    )


def left_calls(text: str, finish_reason: str | None) -> Found:
    """Calls that a server left as text: in the marks of some family of models, or as bare JSON."""
    blocks = fences.blocks(text)
    programs = [block for block in blocks if block.is_program]
    pieces = tuple(tagged.pieces(text, finish_reason, programs, calls_only=True))
    if any(piece.found for piece in pieces):
        return Found(pieces)
    places = [(0, len(text), text)]
    places += [(b.start, b.end, b.code) for b in blocks if b.label in ("json", "")]
    bare = (
        Piece(Stretch(start, end, computes=True), tagged.bare_calls(inner, finish_reason))
        for start, end, inner in places
    )
    found = tuple(piece for piece in bare if piece.found)
    return Found(outside_answers(text, found, finish_reason))


def with_calls(reply: Reply, found: Found) -> Found:
    """What was found in the text, and the native calls beside it: they run although none were
    offered."""
    calls = unique_calls(reply.tool_calls)
    called = tuple(arguments.read(c.name, c.arguments, reply.finish_reason) for c in calls)
    return Found(found.pieces, found.hint, called)


def outside_answers(
    text: str, pieces: Iterable[Piece], finish_reason: str | None
) -> tuple[Piece, ...]:
    """The pieces that are code, and no markup of an answer."""
    pieces = tuple(pieces)
    stretches = tuple(piece.stretch for piece in pieces)
    markup = read_answer(text, stretches, finish_reason).markup
    return tuple(piece for piece in pieces if piece.stretch.start not in markup)


def unique_calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Calls with ids of their own: a call that a gateway sent twice counts once; an empty id or one
    that was used for another call is replaced."""
    kept: dict[str, ToolCall] = {}
    for number, call in enumerate(calls, start=1):
        if kept.get(call.id) == call:
            continue
        fresh = call.id if call.id and call.id not in kept else f"{call.id or 'call'}_{number}"
        kept[fresh] = ToolCall(fresh, call.name, call.arguments)
    return tuple(kept.values())


def history_calls(reply: Reply) -> tuple[ToolCall, ...]:
    """The calls as they go back into the history, with the ids that `unique_calls` gives."""
    return tuple(
        replace(
            call, arguments=arguments.as_history(call.name, call.arguments, reply.finish_reason)
        )
        for call in unique_calls(reply.tool_calls)
    )


def called_code(calls: Iterable[ToolCall], finish_reason: str | None) -> tuple[Action, ...]:
    """A `Run` or a `Malformed` for every call."""
    actions: list[Action] = []
    for call in calls:
        found = arguments.read(call.name, call.arguments, finish_reason)
        if isinstance(found, arguments.Code):
            actions.append(run(found.text, call.id))
        else:
            actions.append(Malformed(found.text, call.id))
    return tuple(actions)


def answer(text: str, found: Found, finish_reason: str | None) -> str | None:
    """The answer span of what remains without the code that was found and other programs."""
    mine = tuple(piece.stretch for piece in found.pieces)
    starts = [stretch.start for stretch in mine]
    ends = [0, *(stretch.end for stretch in mine)]

    def free(other: Stretch) -> bool:
        after = bisect.bisect(starts, other.start)
        return other.start >= ends[after] and bisect.bisect_left(starts, other.end) == after

    others = [other for other in set_aside(text) if free(other)]
    span = read_answer(text, apart([*mine, *others]), finish_reason).span
    return None if span is None else span.strip()


def actions(reply: Reply, text: str, found: Found, how: str) -> tuple[Action, ...]:
    """Code, then the answer; a `Malformed` where there is neither. `how` ends its hint: the way to
    run code in this dialect."""
    span = answer(text, found, reply.finish_reason)
    read: tuple[Action, ...] = found.runs if span is None else (*found.runs, Answer(span))
    return read or (Malformed(hint(reply, found.hints, how)),)


def hint(reply: Reply, hints: tuple[str, ...], how: str) -> str:
    """What the model is told of a reply with neither code nor answer."""
    if hints:
        return f"{hints[0]} {how}"
    if cut_in_reasoning(reply):
        return CUT_IN_REASONING
    if reply.finish_reason in arguments.CUT:
        return CUT_HINT
    what = "Your reply was empty." if not visible(reply).strip() else "No code and no answer found."
    return f"{what} {how}"
