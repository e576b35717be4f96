"""Code in Markdown fences: every server can do it, no tool parser is involved.

Blocks labelled as Python run, in order. Where a reply has none, an unlabelled block runs if it is
plainly Python (it compiles and imports or calls something). Other labels never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agent.dialects import reading
from agent.messages import Action, Malformed, Message, Part, Reply, Run, Text

_HOW = f"Put code to run in a ```python block, or {reading.ANSWER_FORM}."


class Fenced:
    """The dialect `fenced`."""

    name: Literal["tools", "fenced", "tags"] = "fenced"
    tools: tuple[Mapping[str, Any], ...] = ()
    stop: tuple[str, ...] = ()
    instructions: str = (
        "To run code, write it in a fenced block that begins with ```python and ends with ```, "
        "then end your reply; the output comes back in the next message. Several blocks in one "
        "reply run in order. Do not write down outputs yourself."
    )

    def read(self, reply: Reply) -> tuple[Action, ...]:
        """The blocks, then the answer. Where there is no block, calls run although none were
        offered: native ones, and those that a server left as text."""
        text = reading.visible(reply)
        found = reading.fenced_code(text, reply.finish_reason)
        if not found.runs and reply.tool_calls:
            found = reading.with_calls(reply, found)
        elif not found.runs:
            calls = reading.left_calls(text, reply.finish_reason)
            found = calls if calls.runs or not found.hints else found
        return reading.actions(reply, text, found, _HOW)

    def assistant(self, reply: Reply) -> Message:
        """The text; code of native calls as blocks, so that the history shows what ran."""
        text = reply.text or reply.refusal or ""
        if reply.tool_calls and not reading.fenced_code(reading.visible(reply), None).runs:
            runs = reading.with_calls(reply, reading.Found()).runs
            text = "\n".join([text, *(f"```python\n{run.code}\n```" for run in runs)]).lstrip("\n")
        return Message("assistant", (Text(text or "(empty reply)"),))

    def observation(
        self, results: tuple[tuple[Action, tuple[Part, ...]], ...]
    ) -> tuple[Message, ...]:
        return user_message(results)


def user_message(results: tuple[tuple[Action, tuple[Part, ...]], ...]) -> tuple[Message, ...]:
    """All results in one user message, in order, numbered where there are several."""
    several = sum(isinstance(action, Run) for action, _ in results) > 1
    parts: list[Part] = []
    number = 0
    for action, given in results:
        if isinstance(action, Run):
            number += 1
            parts.append(Text(f"Output of block {number}:" if several else "Output:"))
            parts += given or (Text("(no output)"),)
        elif isinstance(action, Malformed):
            parts += given or (Text(action.hint),)
    return (Message("user", tuple(parts)),) if parts else ()
