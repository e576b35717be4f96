"""What the dialects share: reasoning set aside, code located in a reply's text, then the answer.

Each reader of code returns `Found`; `actions` puts code and answer together. Everything is pure and
takes any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent.dialects import arguments, fences, tagged
from agent.dialects.syntax import looks_like_python
from agent.messages import Action, Answer, Malformed, Reply, Run, ToolCall
from benchmarks.answers import answer_span, strip_reasoning

_TORN_TAG = re.compile(r"\s*<?/?thi?n?k?>?\s*", re.IGNORECASE)
"""All there is to see when a stop string fired, or a server's parser split, inside the thinking."""
ANSWER_FORM = "give the final answer as <answer>…</answer>"
CUT_HINT = (
    "Your reply was cut off at the token limit before any code or answer was complete. "
    f"Be brief: send short code, or {ANSWER_FORM}."
)
CUT_CODE = "Your code was cut off at the token limit and was not run. Send shorter code."


@dataclass(frozen=True, slots=True)
class Found:
    """Code in a text: what to run, which stretches it takes up, what was wrong with the rest."""

    runs: tuple[Run, ...] = ()
    taken: tuple[tuple[int, int], ...] = ()
    hints: tuple[str, ...] = ()


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
    return _TORN_TAG.fullmatch(seen) is not None


def run(code: str, call_id: str | None = None) -> Run:
    """A `Run` whose text can be encoded: lone surrogates, which JSON allows, become `?`."""
    return Run(code.encode("utf-8", "replace").decode("utf-8"), call_id)


def fenced_code(text: str, finish_reason: str | None) -> Found:
    """Blocks with a Python label; where there is none, unlabelled ones that are plainly Python."""
    found = fences.blocks(text)
    chosen = [block for block in found if block.is_python]
    if not chosen:
        chosen = [b for b in found if not b.label and b.closed and looks_like_python(b.code)]
    cut = finish_reason in arguments.CUT
    whole = [block for block in chosen if block.closed or not cut]
    hints: list[str] = []
    if len(whole) < len(chosen):
        hints.append(CUT_CODE)
    elif chosen and not any(block.code.strip() for block in chosen):
        hints.append("The code block was empty.")
    elif found and not chosen:
        labels = ", ".join(sorted({block.label or "no label" for block in found}))
        hints.append(f"Only ```python blocks are run; found: {labels[:80]}.")
    return Found(
        tuple(run(block.code) for block in whole if block.code.strip()),
        tuple((block.start, block.end) for block in chosen),
        tuple(hints),
    )


def tagged_code(text: str, finish_reason: str | None, *, calls_only: bool = False) -> Found:
    """`<code>` and `<tool_call>` elements, or the latter alone."""
    names = ("tool_call",) if calls_only else ("code", "tool_call")
    return from_pieces(tagged.pieces(text, finish_reason, names))


def from_pieces(found: Iterable[tagged.Piece]) -> Found:
    """Elements as what they ask to run."""
    found = tuple(found)
    return Found(
        tuple(run(p.found.text) for p in found if isinstance(p.found, arguments.Code)),
        tuple((piece.start, piece.end) for piece in found),
        tuple(p.found.text for p in found if isinstance(p.found, arguments.Hint)),
    )


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


def answer(text: str, taken: Iterable[tuple[int, int]], finish_reason: str | None) -> str | None:
    """The answer span of what remains when the stretches that are code are taken out."""
    kept: list[str] = []
    at = 0
    for start, end in taken:
        kept.append(text[at:start])
        at = end
    return answer_span("\n".join([*kept, text[at:]]), finish_reason)


def actions(reply: Reply, text: str, found: Found, how: str) -> tuple[Action, ...]:
    """Code, then the answer; a `Malformed` where there is neither. `how` ends its hint: the way to
    run code in this dialect."""
    span = answer(text, found.taken, reply.finish_reason)
    read: tuple[Action, ...] = found.runs if span is None else (*found.runs, Answer(span))
    return read or (Malformed(hint(reply, found.hints, how)),)


def hint(reply: Reply, hints: tuple[str, ...], how: str) -> str:
    """What the model is told of a reply with neither code nor answer."""
    if hints:
        return f"{hints[0]} {how}"
    if reply.finish_reason in arguments.CUT:
        return CUT_HINT
    what = "Your reply was empty." if not visible(reply).strip() else "No code and no answer found."
    return f"{what} {how}"
