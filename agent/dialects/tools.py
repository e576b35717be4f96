"""Native function calling: one function, `python(code)`.

A call of any name with a string `code` runs; other calls are answered with a hint. A call that the
server left as text in `<tool_call>` runs too. Code in fences does not: it is an explanation here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agent.dialects import reading
from agent.messages import Action, Answer, Image, Malformed, Message, Part, Reply, Text

_HOW = f"Call the function `python` to run code, or {reading.ANSWER_FORM}."
_PYTHON: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "python",
        "description": (
            "Runs Python in a stateful Jupyter kernel and returns what it printed, its errors and "
            "the pictures it showed."
        ),
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "The code of one cell."}},
            "required": ["code"],
            "additionalProperties": False,
        },
    },
}


class Tools:
    """The dialect `tools`."""

    name: Literal["tools", "fenced", "tags"] = "tools"
    tools: tuple[Mapping[str, Any], ...] = (_PYTHON,)
    stop: tuple[str, ...] = ()
    instructions: str = (
        "To run code, call the function `python` with the code of one cell; the output comes back "
        "as its result. Pictures that the code shows follow in the message after it. When you know "
        "the answer, reply in text without a call."
    )

    def read(self, reply: Reply) -> tuple[Action, ...]:
        """One action a call, in order, then the answer of the text if there is one."""
        text = reading.visible(reply)
        calls = reading.unique_calls(reply.tool_calls)
        as_text = reading.left_calls(text, reply.finish_reason)
        if not calls:
            if not as_text.pieces and reading.fenced_code(text, reply.finish_reason).runs:
                as_text = reading.Found((), "Code in the text of a reply is not run.")
            return reading.actions(reply, text, as_text, _HOW)
        actions = reading.called_code(calls, reply.finish_reason)
        span = reading.answer(text, as_text, reply.finish_reason)
        return actions if span is None else (*actions, Answer(span))

    def assistant(self, reply: Reply) -> Message:
        """The text and the calls, with the ids that `read` uses."""
        calls = reading.history_calls(reply)
        text = reply.text or reply.refusal or ("" if calls else "(empty reply)")
        return Message("assistant", (Text(text),) if text else (), tool_calls=calls)

    def observation(
        self, results: tuple[tuple[Action, tuple[Part, ...]], ...]
    ) -> tuple[Message, ...]:
        """A tool message for every call; pictures, and what belongs to no call, in one user message
        after them, since most servers refuse or overlook pictures in role `tool`."""
        messages: list[Message] = []
        after: list[Part] = []
        for action, parts in results:
            if isinstance(action, Answer):
                continue
            if isinstance(action, Malformed) and not parts:
                parts = (Text(action.hint),)
            if action.call_id is None:
                after += parts
                continue
            pictures = [part for part in parts if isinstance(part, Image)]
            texts = [part.text for part in parts if isinstance(part, Text)]
            if pictures:
                names = ", ".join(picture.name for picture in pictures)
                texts.append(f"[shown in the next message: {names}]")
            told = Text("\n".join(texts) or "(no output)")
            messages.append(Message("tool", (told,), tool_call_id=action.call_id))
            for picture in pictures:
                after += [Text(f"{picture.name}:"), picture]
        return (*messages, Message("user", tuple(after))) if after else tuple(messages)
