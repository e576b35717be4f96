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
        """The elements, then the answer. Where there is no element, native calls run although none
        were offered."""
        text = reading.visible(reply)
        found = reading.tagged_code(text, reply.finish_reason)
        if not found.runs and reply.tool_calls:
            found = reading.with_calls(reply, found)
        return reading.actions(reply, text, found, _HOW)

    def assistant(self, reply: Reply) -> Message:
        """The text, with the stop string that the server cut off; code of native calls as
        elements, so that the history shows what ran."""
        text, seen = reply.text or reply.refusal or "", reading.visible(reply)
        if reply.tool_calls and not reading.tagged_code(seen, reply.finish_reason).runs:
            runs = reading.with_calls(reply, reading.Found()).runs
            text = "\n".join([text, *(f"<code>\n{run.code}\n</code>" for run in runs)]).lstrip("\n")
        last = next(reversed(list(elements(seen))), None)
        cut_off = last is not None and last.kind == "code" and not last.closed
        if cut_off and reply.finish_reason == "stop":
            text += "</code>"
        return Message("assistant", (Text(text or "(empty reply)"),))

    def observation(
        self, results: tuple[tuple[Action, tuple[Part, ...]], ...]
    ) -> tuple[Message, ...]:
        return user_message(results)
