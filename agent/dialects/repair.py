"""Code as it was meant: out of the fence, the tags or the escapes that a model or a gateway put
around it. What compiles as it stands is left alone."""

from __future__ import annotations

import html
import re

from benchmarks.fences import unwrapped
from benchmarks.syntax import compiles

_ELEMENT = re.compile(r"\s*<code>(.*)</code>\s*", re.DOTALL | re.IGNORECASE)
_ESCAPE = re.compile(r"\\([nrt\"'\\])")
_MEANING = {"n": "\n", "r": "", "t": "\t"}
_STRING = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|(?P<line_break>(?:\\r)?\\n)", re.DOTALL
)
"""A string (an open one too: so that none is looked for twice), or an escaped line break."""


def meant(code: str) -> str:
    """The code to run: one that compiles where a plain undoing of one wrapping gives that."""
    element = _ELEMENT.fullmatch(code)
    code = unwrapped(element.group(1).strip("\n") if element else code)
    if compiles(code):
        return code
    undone = (html.unescape(code), _unescaped(code), _lines_unescaped(code))
    return next((other for other in undone if other != code and compiles(other)), code)


def _unescaped(code: str) -> str:
    """One level of escapes undone: the arguments of a call were encoded twice."""
    return _ESCAPE.sub(lambda found: _MEANING.get(found.group(1), found.group(1)), code)


def _lines_unescaped(code: str) -> str:
    """Line breaks undone outside of strings alone: `x = "a\\\\n"\\\\nprint(x)`."""
    return _STRING.sub(lambda found: "\n" if found["line_break"] else found.group(), code)
