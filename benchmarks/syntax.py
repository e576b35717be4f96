"""Whether a text is Python: asked where a reply leaves open what was meant. Runs nothing."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache

_MOST_CHARS = 100_000
"""Longer texts are not tried: nobody means them, and the compiler is not linear in everything."""
_MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)
_DOING = (ast.Call, ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class _Facts:
    compiles: bool = False
    does: bool = False
    """Imports or calls something."""
    complaint: str = ""


def compiles(code: str) -> bool:
    """Whether it is syntactically Python, IPython's magics (`%…`, `!…`) passed over."""
    return _facts(code).compiles


def looks_like_python(code: str) -> bool:
    """Whether a text that is not labelled is code: it compiles, and imports or calls something.

    Numbers, names and tables of them compile now and then; they would do nothing anyway.
    """
    return _facts(code).does


def ends_in_string(code: str) -> bool:
    """Whether it stops inside a triple-quoted string."""
    return _facts(code).complaint.startswith("unterminated triple-quoted")


@lru_cache(maxsize=64)
def _facts(code: str) -> _Facts:
    """Kept for a while: reading a reply asks several times."""
    if len(code) > _MOST_CHARS:
        return _Facts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a wrong escape in the model's string is its own affair
        try:
            tree = ast.parse(code)
        except (ValueError, RecursionError, MemoryError):
            return _Facts()
        except SyntaxError as error:
            plain = _MAGIC.sub(r"\1pass", code)
            return _Facts(complaint=error.msg) if plain == code else _facts(plain)
    return _Facts(True, any(isinstance(node, _DOING) for node in ast.walk(tree)))
