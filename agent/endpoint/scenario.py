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
`docs/scenarios.md` has examples.
"""

from __future__ import annotations

import json
import math
import re
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
_MOST_BYTES = 256 << 20
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[ -~]*")


def read_scenario(path: Path) -> tuple[Step, ...]:
    """The steps of a file, at least one.

    Raises:
        ScenarioError: unreadable, no JSON, or a step that cannot be served.
    """
    values = _values(_text(path), str(path))
    if not values:
        raise ScenarioError(f"{path}: expected at least one step, found none")
    return tuple(_step(value, place) for place, value in values)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise ScenarioError(f"expected a scenario file at {path}, found: {problem}") from None
    if len(data) > _MOST_BYTES:
        raise ScenarioError(f"{path}: expected at most {_MOST_BYTES >> 20} MiB, found more")
    return text


def _values(text: str, name: str) -> list[tuple[str, object]]:
    """Each step with its place: its number in a list, its line in JSON Lines."""
    if text.lstrip().startswith("["):
        steps = cast("list[object]", _json(text, name))
        return [(f"{name}, step {number}", step) for number, step in enumerate(steps, start=1)]
    lines = enumerate(text.split("\n"), start=1)
    named = [(f"{name}, line {number}", line) for number, line in lines if line.strip()]
    return [(place, _json(line, place)) for place, line in named]


def _json(text: str, place: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ScenarioError(
            f"{place}: expected a JSON list or JSON lines, found: {problem}"
        ) from None


def _step(value: object, where: str) -> Step:
    if not isinstance(value, dict):
        raise ScenarioError(f"{where}: expected an object, found {json.dumps(value)[:60]}")
    names = set(cast("dict[str, Any]", value))
    if names - _KNOWN:
        unknown = ", ".join(sorted(names - _KNOWN))
        raise ScenarioError(f"{where}: unknown: {unknown}; known are {', '.join(sorted(_KNOWN))}")
    try:
        step = _STEP.validate_python(value)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        raise ScenarioError(f"{where}: {first['loc'][0]}: {first['msg']}") from None
    fault = _fault(step)
    if fault:
        raise ScenarioError(f"{where}: {fault}")
    return step


def _fault(step: Step) -> str | None:
    """What keeps a step from being served."""
    said = [name for name in ("code", "answer", "text") if getattr(step, name) is not None]
    whole = [name for name in ("message", "body") if getattr(step, name) is not None]
    if not said and not whole and step.status < 400:
        return "expected one of code, answer, text, message, body, or a status from 400, found none"
    if len(whole) + bool(said) > 1:
        return f"expected one kind of answer, found {' and '.join(said + whole)}"
    if not 200 <= step.status <= 599:
        return f"status: expected 200 to 599, found {step.status}"
    if not 0 <= step.delay < math.inf:
        return f"delay: expected seconds, 0 or more, found {step.delay}"
    if step.times < 1 or (step.turn is not None and step.turn < 1):
        return "times and turn: expected 1 or more"
    bad = [n for n, v in step.headers.items() if not (_TOKEN.fullmatch(n) and _VALUE.fullmatch(v))]
    return f"headers: expected printable ASCII, found {bad[0]!r}" if bad else None


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
