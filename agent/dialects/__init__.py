"""Dialects: how code and answers are written in a reply, and how results go back.

`get` gives one by name. Reading a reply is pure and takes anything that a server may send.
"""

from __future__ import annotations

from agent.dialects.fenced import Fenced
from agent.dialects.reading import cut_in_reasoning
from agent.dialects.tags import Tags
from agent.dialects.tools import Tools
from agent.messages import Dialect

__all__ = ["NAMES", "cut_in_reasoning", "get"]

_DIALECTS: dict[str, Dialect] = {"tools": Tools(), "fenced": Fenced(), "tags": Tags()}
NAMES = tuple(_DIALECTS)


def get(name: str) -> Dialect:
    """The dialect `tools`, `fenced` or `tags`.

    Raises:
        KeyError: another name.
    """
    return _DIALECTS[name]
