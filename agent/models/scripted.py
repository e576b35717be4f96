"""`scripted`: a model that needs no server. It solves the tasks we build with their reference
programs, through the same loop, dialect and sandbox as any other: it writes cells, reads what they
print, and answers with the last `ANSWER:` line.

It knows a conversation and nothing else, so that the mock endpoint can serve it over HTTP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from agent.messages import Message, Reply, Request, ToolCall
from agent.models.completion import estimated_usage
from agent.models.errors import ModelRefused
from benchmarks.cwi.tasks import recognise, reference_cells
from benchmarks.errors import BenchmarkError

Style = Literal["tools", "fenced", "tags"]
"""How code is written; the dialects of the same names read it."""

_FILE = re.compile(r"^(image_\d+\.\w+): (/.*?/\1), ", re.MULTILINE)
"""A line of the question that tells where a picture lies in the box."""
_ANSWER = re.compile(r"^ANSWER:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_LAST_REPLY = re.compile(r"last reply", re.IGNORECASE)
_ERROR = re.compile(r"^\w*(?:Error|Exception|Interrupt)\b.*$", re.MULTILINE)
_NO_ANSWER = "unknown"


class Scripted:
    """The model `scripted`."""

    name = "scripted"

    async def reply(self, request: Request) -> Reply:
        """The next cell of the task's reference program, or the answer.

        Raises:
            ModelRefused: the question is of no task that it knows, or no file is named in it.
        """
        style: Style = "tools" if request.tools else "tags" if request.stop else "fenced"
        reply = next_reply(request.messages, style)
        return replace(reply, usage=estimated_usage(request, reply))


def next_reply(messages: Sequence[Message], style: Style) -> Reply:
    """What comes next in this conversation.

    Raises:
        ModelRefused: as `Scripted.reply`.
    """
    question = next((message.text for message in messages if message.role == "user"), "")
    files = {name: path for name, path in _FILE.findall(question)}
    prompt = _prompt(question)
    task = recognise(prompt)
    if task is None:
        raise ModelRefused(
            "scripted: expected the prompt of a task that `pot build cwi` makes, found "
            f"{prompt[:60]!r}; it has reference programs for those alone"
        )
    if not files:
        raise ModelRefused(
            "scripted: expected a line such as `image_1.png: /mnt/data/image_1.png, …` in the "
            "question, found none; it needs the sandbox (--arm code or blind)"
        )
    try:
        cells = reference_cells(task)
    except BenchmarkError as error:
        raise ModelRefused(f"scripted: {error}") from None
    said = [number for number, message in enumerate(messages) if message.role == "assistant"]
    output = "\n".join(message.text for message in messages[said[-1] + 1 :]) if said else ""
    answers = _ANSWER.findall(output)
    if answers or len(said) >= len(cells) or (said and _LAST_REPLY.search(output)):
        return _answer(answers, output)
    cell = cells[len(said)]
    if not said:
        needs_prompt = any("PROMPT" in each for each in cells)
        cell = _head(list(files.values()), prompt if needs_prompt else None) + cell
    turn = len(said) + 1
    return write_code(cell, turn, style, f"Cell {turn} of {len(cells)} for {task}.")


def _prompt(question: str) -> str:
    """The question without the lines that describe the pictures."""
    first = re.search(r"^image_\d+\.\w+: ", question, re.MULTILINE)
    return (question[: first.start()] if first else question).rstrip("\n")


def _head(paths: list[str], prompt: str | None) -> str:
    several = f"PATHS = {paths!r}\n" if len(paths) > 1 else ""
    return f"{several}PATH = {paths[0]!r}\n" + (f"PROMPT = {prompt!r}\n" if prompt else "")


def write_code(code: str, turn: int, style: Style, text: str = "") -> Reply:
    """A reply that asks to run this code, in the given style."""
    if style == "tools":
        call = ToolCall(f"call_{turn}", "python", json.dumps({"code": code}))
        return Reply(text, (call,), finish_reason="tool_calls")
    if style == "tags":
        return Reply(f"{text}\n<code>\n{code}\n</code>".lstrip("\n"), finish_reason="stop")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
    return Reply(f"{text}\n{fence}python\n{code}\n{fence}".lstrip("\n"), finish_reason="stop")


def _answer(answers: list[str], output: str) -> Reply:
    if answers:
        return Reply(f"<answer>{answers[-1]}</answer>", finish_reason="stop")
    errors = _ERROR.findall(output)
    why = f"The program failed: {errors[-1]}" if errors else "The program printed no answer."
    return Reply(f"{why}\n<answer>{_NO_ANSWER}</answer>", finish_reason="stop")
