"""One record as the report shows it: a summary line, facts, and a step a message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent.codec import image_reference
from agent.files import safe_name
from agent.gallery import Gallery
from agent.messages import Image, Message, Run
from agent.record import outcome
from agent.showing import cut
from agent.trajectory import Result, Trajectory, Turn
from sandbox.outputs import Execution


@dataclass(frozen=True, slots=True)
class Block:
    kind: Literal["text", "code", "folded", "picture"]
    text: str
    """Of a picture: its caption."""
    title: str = ""
    src: str = ""
    """`#id` of a picture in the page, or a reference."""
    href: str = ""
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    role: str
    title: str
    note: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the template takes."""

    anchor: str
    id: str
    outcome: str
    verdict: str
    cost: str
    preview: str
    """`#id` of a small picture, or empty."""
    facts: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]


def shown(result: Result, gallery: Gallery) -> Shown:
    trajectory = result.trajectory
    return Shown(
        anchor=f"s-{safe_name(result.id)}.{result.repeat}",
        id=result.id + (f" (repeat {result.repeat})" if result.repeat else ""),
        outcome=outcome(result),
        verdict=_verdict(result),
        cost=_cost(result),
        preview=_preview(trajectory, gallery) if trajectory else "",
        facts=tuple(_facts(result, gallery)),
        steps=tuple(_steps(trajectory, gallery)) if trajectory else (),
    )


def _preview(trajectory: Trajectory, gallery: Gallery) -> str:
    """Of the first picture of the question."""
    parts = [part for message in trajectory.prompt for part in message.parts]
    first = next((part for part in parts if isinstance(part, Image)), None)
    if first is None:
        return ""
    size = first.width, first.height
    return gallery.preview(image_reference(first), first.data, first.mime, size)


def _verdict(result: Result) -> str:
    if result.failure:
        return f"{result.failure.kind}: {result.failure.message}"
    answer = result.trajectory.answer if result.trajectory else None
    said = "no answer" if answer is None else _short(answer)
    return f"{said}   (gold {_short(result.target)})"


def _short(text: str, longest: int = 60) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def _cost(result: Result) -> str:
    if result.trajectory is None:
        return result.difficulty
    turns = len(result.trajectory.turns)
    parts = [
        result.difficulty,
        f"{turns} turn{'s' if turns != 1 else ''}",
        f"{result.trajectory.completion_tokens:,} tokens",
        f"{result.seconds:.1f} s",
    ]
    return " · ".join(part for part in parts if part)


def _facts(result: Result, gallery: Gallery) -> Iterator[tuple[str, str]]:
    yield "task", " · ".join(x for x in (result.task, result.group, result.difficulty) if x)
    if result.failure:
        yield "failure", f"{result.failure.kind}: {result.failure.message}"
    if result.trajectory:
        answer = result.trajectory.answer
        yield "answer", "(none)" if answer is None else gallery.text(cut(answer, 2000))
        yield "gold", gallery.text(cut(result.target, 2000))
        yield "ended by", result.trajectory.stop
    if result.score:
        yield "score", f"{result.score.value} ({result.score.outcome}): {result.score.reason}"
        if result.score.answer is not None:
            yield "read as", gallery.text(cut(result.score.answer, 2000))
    yield "seed", str(result.seed)


def _steps(trajectory: Trajectory, gallery: Gallery) -> Iterator[Step]:
    for message in trajectory.prompt:
        folded = message.role == "system"
        blocks = tuple(_message(message, gallery, "System prompt" if folded else ""))
        yield Step(message.role, f"Prompt ({message.role})", "", blocks)
    for number, turn in enumerate(trajectory.turns, 1):
        yield Step(
            "assistant",
            f"Turn {number}: the model",
            _reply_note(turn),
            tuple(_reply(turn, gallery)),
        )
        for message in turn.sent:
            if message.role != "assistant":
                title = f"Turn {number}: sent back ({message.role})"
                yield Step(message.role, title, "", tuple(_message(message, gallery)))
        if turn.executions:
            cells = tuple(Block("text", _resources(e)) for e in turn.executions)
            yield Step("cells", f"Turn {number}: cells", "measured outside the kernel", cells)


def _message(message: Message, gallery: Gallery, folded: str = "") -> Iterator[Block]:
    for part in message.parts:
        if isinstance(part, Image):
            yield _picture(part, gallery)
        elif folded:
            yield Block("folded", gallery.text(part.text), title=folded)
        else:
            yield Block("code" if message.role == "tool" else "text", gallery.text(part.text))


def _picture(image: Image, gallery: Gallery) -> Block:
    size = f"{image.width}×{image.height}"
    caption = f"{image.name} · sent at {size} px"
    if (image.original_width, image.original_height) != (image.width, image.height):
        caption += f", file {image.original_width}×{image.original_height} px"
    name = image_reference(image)
    return Block(
        "picture",
        caption,
        src=gallery.source(name, image.data, image.mime, (image.width, image.height)),
        href=gallery.reference(name),
        width=image.width,
        height=image.height,
    )


def _reply_note(turn: Turn) -> str:
    reply = turn.reply
    usage = f"{reply.usage.completion_tokens:,} tokens" + (" (estimated)" * reply.usage.estimated)
    ended = f"finish reason {reply.finish_reason}" if reply.finish_reason else ""
    kept = "from the run's cache" if reply.cached else ""
    parts = [usage, f"{reply.seconds:.1f} s", ended, kept]
    return " · ".join(part for part in parts if part)


def _reply(turn: Turn, gallery: Gallery) -> Iterator[Block]:
    reply = turn.reply
    if reply.reasoning:
        yield Block("folded", gallery.text(reply.reasoning), title="Reasoning")
    if reply.text.strip():
        yield Block("text", gallery.text(reply.text))
    if reply.refusal:
        yield Block("text", f"Refusal: {gallery.text(reply.refusal)}")
    for action in turn.actions:
        if isinstance(action, Run) and action.code.strip() not in reply.text:
            yield Block("code", gallery.text(action.code))
    for call in reply.tool_calls:
        if not any(isinstance(a, Run) and a.call_id == call.id for a in turn.actions):
            yield Block("code", f"{call.name}({gallery.text(call.arguments)})")


def _resources(execution: Execution) -> str:
    cause = f" ({execution.cause})" if execution.cause else ""
    kernel = "" if execution.kernel == "kept" else " · kernel restarted"
    dropped = execution.dropped
    cut_off = f" · cut: {dropped.chars} characters, {dropped.pictures} pictures"
    return (
        f"{execution.status}{cause} · {execution.seconds:.2f} s · CPU "
        f"{execution.cpu_seconds:.2f} s · peak {execution.peak_mb:.0f} MiB{kernel}"
        + (cut_off if dropped.chars or dropped.pictures else "")
    )
