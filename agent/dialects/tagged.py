"""What the elements in a reply's text ask to run: `<code>…</code>`, and calls left as text.

A closing tag that is missing at the end is put back where the reply stopped by itself: servers cut
the stop string off. In a reply that was cut by its length, the code was cut too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent import loose_json
from agent.dialects.arguments import CUT, Code, Hint, is_ours, read
from agent.dialects.repair import meant
from benchmarks.answers import Stretch
from benchmarks.elements import Element, elements
from benchmarks.fences import Block
from benchmarks.syntax import looks_like_python

CUT_CODE = "Your code was cut off at the token limit and was not run. Send shorter code."
_FUNCTION = re.compile(r"<function=([^<>\n]{1,80})>")
_HEAD_NAME = re.compile(r"(?:function=|name=|to=)[\s\"']{0,3}([^\"'<>\s]{1,80})")
_NAME_FIRST = re.compile(
    r"\s*(?:function\s*<[|｜]tool[_▁]sep[|｜]>\s*)?([\w.:-]{1,80})\s*"
    r"(?:<[|｜](?:tool[_▁]sep|tool_call_argument_begin)[|｜]>|\[ARGS\]|(?=\{)|(?=```))"
)
_PARAMETER = re.compile(
    r"<parameter(?:=|\s+name=)[\"']?(?:code|script|source)[\"']?[^<>\n]{0,60}>(.*?)"
    r"(?:</parameter>|\Z)",
    re.DOTALL,
)
_ARGUMENT_KEY = re.compile(
    r"\s*([\w.:-]{1,80})\s*<arg_key>\s*code\s*</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|\Z)",
    re.DOTALL,
)
_CODE_BESIDE = re.compile(r"[^<]*<code>(.*?)(?:</code>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of the text and what it asks to run; nothing for outputs."""

    stretch: Stretch
    found: tuple[Code | Hint, ...]


def pieces(
    text: str,
    finish_reason: str | None,
    blocks: Sequence[Block] = (),
    *,
    calls_only: bool = False,
) -> Iterator[Piece]:
    """Every element outside of these fenced blocks in order, or the calls and made-up outputs among
    them."""
    for element in elements(text, blocks):
        if element.kind == "code" and calls_only:
            continue
        found = () if element.kind == "output" else _read(element, finish_reason)
        computes = element.kind != "code" or looks_like_python(element.inner)
        yield Piece(Stretch(element.start, element.end, computes), found)


def bare_calls(text: str, finish_reason: str | None) -> tuple[Code | Hint, ...]:
    """A text that is a call of ours as JSON and nothing else (Llama), or a list of them."""
    if text.lstrip()[:1] not in ("{", "["):
        return ()
    calls = _calls(loose_json.load(text)[0])
    if not all(is_ours(str(call["name"])) for call in calls):
        return ()
    return tuple(_called(call, finish_reason) for call in calls)


def _read(element: Element, finish_reason: str | None) -> tuple[Code | Hint, ...]:
    end = "stop" if element.closed else finish_reason
    if element.kind == "code":
        return (Hint(CUT_CODE) if end in CUT else _code(element.inner),)
    name = _HEAD_NAME.search(element.head)
    if name is not None:
        return (_named(name.group(1), element.inner, end),)
    return _unnamed(element.inner, end)


def _code(inner: str) -> Code | Hint:
    code = meant(inner).strip("\n")
    return Code(code) if code.strip() else Hint("The <code> element was empty.")


def _named(name: str, body: str, finish_reason: str | None) -> Code | Hint:
    """A call whose function is known: its arguments as JSON, or as `<parameter>` elements."""
    parameter = _PARAMETER.search(body)
    if parameter is not None:
        body = loose_json.dump({"code": parameter.group(1).strip("\n")})
    return read(name, body, finish_reason)


def _unnamed(body: str, finish_reason: str | None) -> tuple[Code | Hint, ...]:
    """The calls of a body that names its function itself, in one of the ways that are known."""
    function = _FUNCTION.search(body)
    if function is not None:
        return (_named(function.group(1), body[function.end() :], finish_reason),)
    argument = _ARGUMENT_KEY.match(body)
    if argument is not None:
        code = loose_json.dump({"code": argument.group(2).strip("\n")})
        return (read(argument.group(1), code, finish_reason),)
    first = _NAME_FIRST.match(body)
    if first is not None:
        return (read(first.group(1), body[first.end() :], finish_reason),)
    calls = _calls(loose_json.load(body)[0])
    if calls:
        return tuple(_called(call, finish_reason) for call in calls)
    beside = _CODE_BESIDE.match(body)
    return (_code(beside.group(1)) if beside else read("python", body, finish_reason),)


def _calls(value: object) -> tuple[dict[str, Any], ...]:
    """`{"name": …, "arguments": …}`, or a list of such; none for other JSON."""
    calls = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(call, dict) and "name" in call for call in calls):
        return ()
    return tuple(cast("list[dict[str, Any]]", calls))


def _called(call: dict[str, Any], finish_reason: str | None) -> Code | Hint:
    inner = call.get("arguments", call.get("parameters", ""))
    written = inner if isinstance(inner, str) else loose_json.dump(inner)
    return read(str(call["name"]), written, finish_reason)
