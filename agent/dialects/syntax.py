"""Whether a text is Python: asked where a reply leaves open what was meant. Runs nothing."""

from __future__ import annotations

import ast
import warnings

_MOST_CHARS = 100_000
"""Longer texts are not tried: nobody means them, and the compiler is not linear in everything."""


def compiles(code: str) -> bool:
    """Whether it is syntactically Python; magics (`%`, `!`) are not."""
    return _tree(code) is not None


def looks_like_python(code: str) -> bool:
    """Whether an unlabelled block is code: it compiles, and imports or calls something.

    Numbers, names and tables of them compile now and then; they would do nothing anyway.
    """
    tree = _tree(code)
    doing = (ast.Call, ast.Import, ast.ImportFrom)
    return tree is not None and any(isinstance(node, doing) for node in ast.walk(tree))


def _tree(code: str) -> ast.Module | None:
    if len(code) > _MOST_CHARS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a wrong escape in the model's string is its own affair
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
