"""Exceptions as text, whatever a cell made of them: classes with strange names, methods that raise,
chains without end. Nothing here trusts an exception's own attributes, nor raises."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, cast

from .terminal import encodable

MAX_CHAIN = 50
"""Exceptions that led to one another, beyond which only the last is shown."""

_name = type.__dict__["__name__"].__get__
_cause = BaseException.__dict__["__cause__"].__get__
_context = BaseException.__dict__["__context__"].__get__
_set_context = BaseException.__dict__["__context__"].__set__
_trace = BaseException.__dict__["__traceback__"].__get__


def name_of(kind: type) -> str:
    """The class's name, past a metaclass that would give another."""
    return encodable(str(_name(kind)))


def text_of(value: BaseException) -> str:
    """What the exception says."""
    said, problem = attempt(lambda: str(value))
    return encodable(said) if not problem else f"(its text cannot be made: {problem})"


def describe(value: BaseException) -> dict[str, Any]:
    """Name, text and traceback as a Jupyter reply has them."""
    kind = type(value)
    return {
        "ename": name_of(kind),
        "evalue": text_of(value),
        "traceback": lines_of(value, _trace(value)),
    }


def is_plain(value: BaseException) -> bool:
    """Whether IPython's own rendering can be trusted with it: each text can be made, and there is
    no group and no endless chain."""
    seen: set[int] = set()
    found: BaseException | None = value
    while found is not None:
        if isinstance(found, BaseExceptionGroup) or id(found) in seen or len(seen) > MAX_CHAIN:
            return False
        if attempt(partial(str, found))[1]:
            return False
        seen.add(id(found))
        cause = _cause(found)
        found = _context(found) if cause is None else cause
    return True


@contextmanager
def short_chain(value: BaseException) -> Generator[None]:
    """Cuts what led to the exception for a while. Python follows the whole chain of the one that
    is being handled each time another is raised, so that showing it would take seconds."""
    last: BaseException | None = value
    for _ in range(MAX_CHAIN):
        last = None if last is None else _context(last)
    rest = None if last is None else _context(last)
    if last is None or rest is None:
        yield
        return
    _set_context(last, None)
    try:
        yield
    finally:
        _set_context(last, rest)


def lines_of(value: BaseException, trace: TracebackType | None) -> list[str]:
    """Python's own rendering; without the frames of IPython, which say nothing about the cell."""
    while trace is not None and not _is_cells(trace):
        trace = trace.tb_next
    text, problem = attempt(lambda: _render(value, trace))
    if problem:
        text = f"{name_of(type(value))}: {text_of(value)}"
    return encodable(text).rstrip("\n").split("\n")


def _render(value: BaseException, trace: TracebackType | None) -> str:
    kind = type(value)
    if isinstance(value, BaseExceptionGroup):
        return "".join(traceback.format_exception(kind, cast("Any", value), trace))
    frames = traceback.format_tb(trace)
    if attempt(lambda: str(value))[1]:
        return "".join([*frames, f"{name_of(kind)}: {text_of(value)}"])
    # Of a chain only the last: the whole of it could be endless.
    return "".join([*frames, *traceback.format_exception_only(kind, value)])


def attempt(make: Callable[[], Any]) -> tuple[str, str]:
    """The text, and the name of what was raised instead: a cell's own methods may do anything, even
    give a text that is of a class of their own."""
    try:
        made = make()
        return str.__str__(made) if isinstance(made, str) else "", ""
    except BaseException as error:  # noqa: BLE001 - as said; an interrupt ends the cell all the same
        return "", name_of(type(error))


def _is_cells(trace: TracebackType) -> bool:
    name = trace.tb_frame.f_code.co_filename
    return "<ipython-input" in name or "/ipykernel_" in name
