"""A scenario: replies and faults from a file, served in order. JSON (a list) or JSON Lines.

Each step is an object. What is answered, one of:
  `code`      Python to run, written in the dialect      `answer`   an answer span
  `text`      the text of a reply                        `message`  an assistant message, as it is
  `body`      a whole body: JSON as it is, or a string that is sent as it is (broken JSON, HTML)
How, any of:
  `status` (200), `headers`, `finish_reason` ("stop"), `delay` in seconds,
  `cut` true: half of the body is sent, then the connection is closed,
  `times` (1): how often the step is served,
  `turn`: serve it whenever that reply of a conversation is asked for; it is never used up.
A request for which no step is left is answered 400, so that a test that asks too often fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import TypeAdapter, ValidationError

from agent.endpoint import conversation
from agent.endpoint.answerers import Served, error, said
from agent.messages import Reply
from agent.models.completion import read_message
from agent.models.scripted import Style, write_code


class ScenarioError(ValueError):
    """A scenario file cannot be used; one line that names the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, as in the module's text."""

    code: str | None = None
    answer: str | None = None
    text: str | None = None
    message: dict[str, Any] | None = None
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    finish_reason: str | None = "stop"
    delay: float = 0.0
    cut: bool = False
    times: int = 1
    turn: int | None = None


_STEP = TypeAdapter(Step)
_KNOWN = frozenset(Step.__dataclass_fields__)


def read_scenario(path: Path) -> tuple[Step, ...]:
    """The steps of a file.

    Raises:
        ScenarioError: unreadable, no JSON, or a step that is none.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ScenarioError(f"expected a scenario file at {path}, found: {problem}") from None
    try:
        if text.lstrip().startswith("["):
            values = cast("list[object]", json.loads(text))
        else:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as problem:
        raise ScenarioError(
            f"{path}: expected a JSON list or JSON lines, found: {problem}"
        ) from None
    return tuple(_step(value, f"{path}, step {n}") for n, value in enumerate(values, start=1))


def _step(value: object, where: str) -> Step:
    names = set(cast("dict[str, Any]", value)) if isinstance(value, dict) else {"(no object)"}
    if names - _KNOWN:
        unknown = ", ".join(sorted(names - _KNOWN))
        raise ScenarioError(f"{where}: unknown: {unknown}; known are {', '.join(sorted(_KNOWN))}")
    try:
        return _STEP.validate_python(value)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        raise ScenarioError(f"{where}: {first['loc'][0]}: {first['msg']}") from None


class ScenarioAnswers:
    """Serves the steps. In-order steps are used up; those of a turn are not."""

    models: tuple[str, ...] = ("scenario",)

    def __init__(self, steps: tuple[Step, ...], style: Style | Literal["auto"] = "auto") -> None:
        self._steps = [step for step in steps if step.turn is None for _ in range(step.times)]
        self._by_turn = {step.turn: step for step in steps if step.turn is not None}
        self._style: Style | Literal["auto"] = style
        self._next = 0

    async def answer(self, body: Mapping[str, Any], number: int) -> Served:
        turn = conversation.turn(body)
        step = self._by_turn.get(turn)
        if step is None and self._next < len(self._steps):
            step = self._steps[self._next]
            self._next += 1
        if step is None:
            return error(400, f"the scenario has no step for request {number} (reply {turn})")
        served = self._serve(step, body, number, turn)
        return replace(
            served, status=step.status, headers=step.headers, delay=step.delay, cut=step.cut
        )

    def _serve(self, step: Step, body: Mapping[str, Any], number: int, turn: int) -> Served:
        if step.body is not None or step.status >= 400:
            raw = step.body if isinstance(step.body, str) else json.dumps(step.body or {})
            whole = isinstance(step.body, dict) and bool(
                cast("dict[str, Any]", step.body).get("choices")
            )
            return Served(raw.encode("utf-8", "surrogatepass"), completion=whole)
        return said(self._reply(step, body, turn), body, number)

    def _reply(self, step: Step, body: Mapping[str, Any], turn: int) -> Reply:
        if step.message is not None:
            return replace(read_message(step.message), finish_reason=step.finish_reason)
        text = step.text or ""
        if step.answer is not None:
            text = f"{text}\n<answer>{step.answer}</answer>".lstrip("\n")
        if step.code is not None:
            return write_code(step.code, turn, conversation.style(body, self._style), text)
        return Reply(text, finish_reason=step.finish_reason)
