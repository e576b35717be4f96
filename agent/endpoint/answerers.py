"""Who answers at the mock endpoint: reference programs, golds, a scenario's steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agent.endpoint import conversation
from agent.messages import Reply
from agent.models.errors import ModelRefused
from agent.models.scripted import Style, next_reply


@dataclass(frozen=True, slots=True)
class Served:
    """One HTTP answer."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    """Seconds before the first byte."""
    cut: bool = False
    """Half of the body is sent, then the connection is closed."""
    completion: bool = False
    """Whether the body is one."""


class Answerer(Protocol):
    """Answers one request after the other; may keep count."""

    models: tuple[str, ...]
    """What `/models` lists."""

    async def answer(self, body: Mapping[str, Any], number: int) -> Served:
        """The answer to a body that is a JSON object; `number` counts requests from 1."""
        ...


def error(status: int, message: str, code: str | None = None) -> Served:
    """An error in the form that OpenAI's servers use."""
    body = {"error": {"message": message, "type": "mock_endpoint", "param": None, "code": code}}
    return Served(json.dumps(body).encode(), status)


def said(reply: Reply, body: Mapping[str, Any], number: int) -> Served:
    """A completion that says this."""
    model = str(body.get("model", "mock"))
    completion = conversation.completion(reply, conversation.messages(body), model, number)
    return Served(json.dumps(completion).encode(), completion=True)


class ScriptedAnswers:
    """The reference programs, turn by turn."""

    models: tuple[str, ...] = ("scripted",)

    def __init__(self, style: Style | Literal["auto"] = "auto") -> None:
        self._style: Style | Literal["auto"] = style

    async def answer(self, body: Mapping[str, Any], number: int) -> Served:
        try:
            messages = conversation.messages(body)
            reply = next_reply(messages, conversation.style(body, self._style))
        except (ValueError, ModelRefused) as problem:
            return error(400, str(problem))
        return said(reply, body, number)
