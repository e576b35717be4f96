"""The arguments of a tool call → code, or a hint for the model. Pure, and it never raises.

Models and servers break this JSON in known ways (raw newlines, invalid escapes, a fence around it,
everything escaped twice, a list instead of an object). What has one plain meaning is repaired; the
rest is answered with what is wrong and where, never run as an empty call.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from typing import Any, cast

from agent import loose_json
from agent.dialects.repair import meant
from benchmarks.syntax import looks_like_python

_OUR_NAME = re.compile(
    r"(?:(?:functions|default_api|tools?)\.|mcp__\w{1,40}?__)?"
    r"(?:\w{0,30}(?:python|jupyter|interpreter)\w{0,30}"
    r"|(?:run_|execute_|exec_)?(?:py|code|cell|repl)(?:_exec|_code)?|exec(?:ute)?)(?::\d{1,4})?",
    re.IGNORECASE,
)
"""Ways in which models spell the name of a function that runs Python."""
_OTHER_KEYS = ("script", "source", "python", "python_code", "program", "cell")
_DOUBTFUL_KEYS = ("input", "command", "cmd", "query", "text")
"""Other keys of a function that is named like ours: of doubtful ones the value must be Python."""
_NESTED = ("arguments", "parameters", "input", "kwargs")
CUT = frozenset({"length", "max_tokens", "content_filter"})
"""Finish reasons of a reply that stops in the middle."""


@dataclass(frozen=True, slots=True)
class Code:
    text: str


@dataclass(frozen=True, slots=True)
class Hint:
    text: str


def is_ours(name: str) -> bool:
    """Whether a function of this name runs Python."""
    return _OUR_NAME.fullmatch(name.strip()) is not None


def read(name: str, arguments: str, finish_reason: str | None) -> Code | Hint:
    """What a call of function `name` asks to run.

    Any name will do when there is a string `code`; a function named like ours may also carry its
    code under another key, in a list of lines, or bare.
    """
    ours = is_ours(name)
    name = name[:60]
    if not arguments.strip():
        return Hint(f"The call of `{name}` had no arguments. {usage()}")
    values, problem = loose_json.load(arguments)
    if values is None:
        bare = meant(arguments.strip())
        if ours and bare[:1] not in ("{", "[", '"') and looks_like_python(bare):
            return Code(bare)
        return Hint(_broken(name, problem, finish_reason))
    code = _find(values, ours)
    if code is None:
        had = ", ".join(map(str, values)) if isinstance(values, dict) else ""
        had = f" It had: {had}."[:200] if had else ""
        unknown = "" if ours else f"There is no function `{name}`. "
        return Hint(f"{unknown}The call had no string `code`.{had} {usage()}".replace("\n", " "))
    code = meant(code)
    return Code(code) if code.strip() else Hint(f"The `code` of the call was empty. {usage()}")


def as_history(name: str, arguments: str, finish_reason: str | None) -> str:
    """The arguments as they go back to a server, which refuses a whole conversation for one call
    whose arguments are no JSON object that can be encoded. What the model wrote stays where it may;
    else the code that was read from it, or the text itself, stands in an object."""
    with contextlib.suppress(ValueError, RecursionError):  # also of text that cannot be encoded
        values: object = json.loads(arguments)
        if isinstance(values, dict):
            json.dumps(values, ensure_ascii=False).encode("utf-8")
            return arguments
    found = read(name, arguments, finish_reason)
    kept = {"code": found.text} if isinstance(found, Code) else {"unreadable": arguments}
    return json.dumps({key: text.encode("utf-8", "replace").decode() for key, text in kept.items()})


def usage() -> str:
    """The form of a call, for hints."""
    return 'Call `python` with {"code": "…"}.'


def _broken(name: str, problem: str, finish_reason: str | None) -> str:
    if finish_reason in CUT:
        return (
            f"The call of `{name}` was cut off at the token limit and was not run. "
            "Send shorter code."
        )
    what = f"The arguments of `{name}` are not valid JSON ({problem})"
    return f"{what}; nothing was run. {usage()}"


def _find(values: dict[str, Any] | list[Any] | str, ours: bool) -> str | None:
    if isinstance(values, dict):
        found = _in_object(values, ours)
        return _in_nested(values, ours) if found is None else found
    if not ours:
        return None
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], dict):
        return _in_object(cast("dict[str, Any]", values[0]), ours)
    return _text(values)


def _in_object(values: dict[str, Any], ours: bool) -> str | None:
    by_name = {str(key).strip().lower(): value for key, value in values.items()} | values
    for key in ("code", *(_OTHER_KEYS if ours else ())):
        text = _text(by_name.get(key))
        if text is not None:
            return text
    for key in _DOUBTFUL_KEYS if ours else ():
        value = by_name.get(key)
        if isinstance(value, str) and looks_like_python(meant(value)):
            return value
    return None


def _in_nested(values: dict[str, Any], ours: bool) -> str | None:
    """A whole call in the arguments: `{"name": …, "arguments": {"code": …}}`."""
    for key in _NESTED:
        inner = values.get(key)
        if isinstance(inner, str):
            inner, _ = loose_json.load(inner)
        if isinstance(inner, dict):
            return _in_object(cast("dict[str, Any]", inner), ours)
    return None


def _text(value: object) -> str | None:
    """A string, or a list of lines as one."""
    if isinstance(value, list):
        lines = cast("list[object]", value)
        if lines and all(isinstance(line, str) for line in lines):
            return "\n".join(cast("list[str]", lines))
        return None
    return value if isinstance(value, str) else None
