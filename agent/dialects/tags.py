"""Code in `<code>…</code>`, with the closing tag as the stop string; put back where it was cut off.

Calls that a server left as text are understood too. A code fence inside the element is unwrapped;
code outside of elements does not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agent.dialects import reading
from agent.dialects.fenced import user_message
from agent.messages import Action, Message, Part, Reply, Text
from benchmarks.elements import elements

_HOW = f"Put code to run between <code> and </code>, or {reading.ANSWER_FORM}."


class Tags:
    """The dialect `tags`."""

    name: Literal["tools", "fenced", "tags"] = "tags"
    tools: tuple[Mapping[str, Any], ...] = ()
    stop: tuple[str, ...] = ("</code>",)
    instructions: str = (
        "To run code, write it between <code> and </code>, then end your reply; the output comes "
        "back in the next message. Do not write down outputs yourself."
    )

    def read(self, reply: Reply) -> tuple[Action, ...]:
        """The elements, then the answer."""
        text = reading.visible(reply)
        found = reading.tagged_code(text, reply.finish_reason)
        return reading.actions(reply, text, found, _HOW)

    def assistant(self, reply: Reply) -> Message:
        """The text, with the stop string that the server cut off."""
        text = reply.text or reply.refusal or "(empty reply)"
        last = next(reversed(list(elements(reading.visible(reply)))), None)
        cut_off = last is not None and last.kind == "code" and not last.closed
        if cut_off and reply.finish_reason == "stop":
            text += "</code>"
        return Message("assistant", (Text(text),))

    def observation(
        self, results: tuple[tuple[Action, tuple[Part, ...]], ...]
    ) -> tuple[Message, ...]:
        return user_message(results)
