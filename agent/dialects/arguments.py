"""The arguments of a tool call → code, or a hint for the model. Pure, and it never raises.

Models and servers break this JSON in known ways (raw newlines, invalid escapes, a fence around it,
everything escaped twice, a list instead of an object). What has one plain meaning is repaired; the
rest is answered with what is wrong and where, never run as an empty call.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any, cast

from agent.dialects.fences import unwrapped
from agent.dialects.syntax import compiles, looks_like_python

_OUR_NAME = re.compile(
    r"(?:functions\.)?(?:(?:run_|execute_|exec_)?(?:i?python3?|code|cell)(?:_interpreter|_code|_exec)?"
    r"|jupyter|exec(?:ute)?)",
    re.IGNORECASE,
)
"""Ways in which models spell the name of a function that runs Python."""
_OTHER_KEYS = ("script", "source", "python", "python_code", "input", "command", "cmd", "query")
CUT = frozenset({"length", "max_tokens", "content_filter"})
"""Finish reasons of a reply that stops in the middle."""
_ONE_FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL | re.IGNORECASE)
_FUNCTION = re.compile(r"<function=([^>\n]{1,80})>")
_PARAMETER = re.compile(r"<parameter=code>(.*?)(?:</parameter>|\Z)", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?|\\[nrt]', re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Code:
    text: str


@dataclass(frozen=True, slots=True)
class Hint:
    text: str


def read(name: str, arguments: str, finish_reason: str | None) -> Code | Hint:
    """What a call of function `name` asks to run.

    Any name will do when there is a string `code`; a function named like ours may also carry its
    code under another key, in a list of lines, or bare.
    """
    ours = _OUR_NAME.fullmatch(name.strip()) is not None
    name = name[:60]
    if not arguments.strip():
        return Hint(f"The call of `{name}` had no arguments. {_usage()}")
    values, problem = _load(arguments)
    if values is None and ours and looks_like_python(arguments):
        return Code(arguments)
    if values is None:
        return Hint(_broken(name, problem, finish_reason))
    code = _find(values, ours)
    if code is None:
        had = (
            f" It had: {', '.join(map(str, values))}."
            if isinstance(values, dict) and values
            else ""
        )
        unknown = "" if ours else f"There is no function `{name}`. "
        return Hint(f"{unknown}The call had no string `code`.{had[:200]} {_usage()}")
    if not code.strip():
        return Hint(f"The `code` of the call was empty. {_usage()}")
    return Code(_once_unescaped(unwrapped(code)))


def read_text_call(text: str, finish_reason: str | None) -> Code | Hint:
    """What a call written as text asks to run: the inside of `<tool_call>…</tool_call>`, either
    `{"name": …, "arguments": {…}}` or `<function=name><parameter=code>…</parameter></function>`."""
    markup = _FUNCTION.search(text)
    if markup is not None:
        code = _PARAMETER.search(text, markup.end())
        arguments = json.dumps({"code": code.group(1).strip("\n")} if code else {})
        return read(markup.group(1).strip(), arguments, finish_reason)
    values, _ = _load(text)
    if not isinstance(values, dict) or "name" not in values:
        return read("python", text, finish_reason)
    inner = values.get("arguments", values.get("parameters", ""))
    written = inner if isinstance(inner, str) else json.dumps(inner)
    return read(str(values["name"]), written, finish_reason)


def _usage() -> str:
    return 'Call `python` with {"code": "…"}.'


def _broken(name: str, problem: str, finish_reason: str | None) -> str:
    if finish_reason in CUT:
        return (
            f"The call of `{name}` was cut off at the token limit and was not run. "
            "Send shorter code."
        )
    what = f"The arguments of `{name}` are not valid JSON ({problem})"
    return f"{what}; nothing was run. {_usage()}"


def _find(values: dict[str, Any] | list[Any] | str, ours: bool) -> str | None:
    if isinstance(values, dict):
        keys = ("code", *_OTHER_KEYS) if ours else ("code",)
        found = (_text(values.get(key)) for key in keys)
        return next((text for text in found if text is not None), None)
    if not ours:
        return None
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], dict):
        return _find(cast("dict[str, Any]", values[0]), ours)
    return _text(values)


def _text(value: object) -> str | None:
    """A string, or a list of lines as one."""
    if isinstance(value, list):
        lines = cast("list[object]", value)
        if lines and all(isinstance(line, str) for line in lines):
            return "\n".join(cast("list[str]", lines))
        return None
    return value if isinstance(value, str) else None


def _load(arguments: str) -> tuple[dict[str, Any] | list[Any] | str | None, str]:
    """The value, or None and the first complaint."""
    fenced = _ONE_FENCE.fullmatch(arguments)
    text = fenced.group(1) if fenced else arguments.strip()
    problem = ""
    for candidate in (text, _without_loose_escapes(text), _with_doubled_escapes(text)):
        try:
            values = json.loads(candidate, strict=False)
        except (ValueError, RecursionError) as error:
            problem = problem or (str(error) if isinstance(error, ValueError) else "too deep")
            continue
        if isinstance(values, str) and values.lstrip()[:1] in ("{", "["):  # encoded twice
            inner, _ = _load(values) if len(values) < len(text) else (None, "")
            return (values if inner is None else inner), ""
        if not isinstance(values, dict | list | str):
            return None, "not an object"
        return cast("dict[str, Any] | list[Any] | str", values), ""
    return _python_literal(text), problem


def _without_loose_escapes(text: str) -> str:
    """`\\n` between the members, outside of strings, where only white space may stand."""
    return _STRING.sub(lambda m: m.group() if m.group()[0] == '"' else " ", text)


def _with_doubled_escapes(text: str) -> str:
    """`\\d` and the like become `\\\\d`: the backslash was meant as one."""
    return _BAD_ESCAPE.sub(lambda m: m.group() if len(m.group()) > 1 else "\\\\", text)


def _python_literal(text: str) -> dict[str, Any] | None:
    """`{'code': '…'}` in Python's own spelling: single quotes, a comma at the end."""
    if not text.startswith("{") or not compiles(text):
        return None
    try:
        values = ast.literal_eval(text)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    return cast("dict[str, Any]", values) if isinstance(values, dict) else None


def _once_unescaped(code: str) -> str:
    """Code whose newlines were escaped twice: one long line that only compiles when undone."""
    if "\n" in code or "\\n" not in code or compiles(code):
        return code
    undone = code.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    return undone if compiles(undone) else code
