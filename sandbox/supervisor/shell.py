"""The kernel's shell: every exception that ends a cell is published as an error, whatever it is.

IPython prints some (groups, exceptions whose text cannot be made) to standard error or not at all,
and a lone surrogate in the text loses the whole message.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ipykernel.zmqshell import ZMQInteractiveShell

from .terminal import encodable

_OURS = os.path.dirname(__file__) + os.sep  # noqa: PTH120
MAX_CHAIN = 50
"""Exceptions that led to one another, beyond which only the last is shown."""


class BoxShell(ZMQInteractiveShell):
    """Publishes exactly one error for each exception that reaches the top of a cell, and does not
    keep everything that was ever printed or shown."""

    _published = False

    @contextmanager
    def _tee(self, channel: str) -> Generator[None]:
        """IPython would copy each written text into a list that is never emptied."""
        yield

    def _get_exc_info(self, exc_tuple: Any = None) -> tuple[Any, Any, Any]:
        """Ends a traceback where our own code begins: the model's line is what it must see."""
        kind, value, trace = super()._get_exc_info(exc_tuple)
        entry = trace
        while entry is not None and entry.tb_next is not None:
            if entry.tb_next.tb_frame.f_code.co_filename.startswith(_OURS):
                entry.tb_next = None
            entry = entry.tb_next
        return kind, value, trace

    def showtraceback(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        try:
            kind, value, trace = self._get_exc_info(exc_tuple)
        except ValueError:
            return super().showtraceback(exc_tuple, *args, **kwargs)
        self._published = False
        if _is_plain(value):
            try:
                super().showtraceback(exc_tuple, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the exception's own methods may raise anything
                print(f"(showing the error failed: {type(error).__name__})", file=sys.stderr)  # noqa: T201
        if not self._published:
            self._showtraceback(kind, value, _lines(kind, value, trace))
        return None

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        self._published = True
        for name in ("stdout", "stderr"):
            # A cell may have put anything there; without a flush the order of outputs is lost.
            if not hasattr(getattr(sys, name), "flush"):
                setattr(sys, name, getattr(sys, f"__{name}__"))
        message = encodable(_text(evalue))
        super()._showtraceback(etype, message, [encodable(str(line)) for line in stb])


def encodable_reply(reply: Any) -> Any:
    """An execute reply whose texts can be sent."""
    if isinstance(reply, dict):
        return {key: encodable_reply(value) for key, value in reply.items()}
    if isinstance(reply, list | tuple):
        return [encodable_reply(value) for value in reply]
    return encodable(reply) if isinstance(reply, str) else reply


def _is_plain(value: BaseException) -> bool:
    """Whether IPython's own rendering can be trusted with it: no group, no endless chain."""
    seen: set[int] = set()
    found: BaseException | None = value
    while found is not None:
        if isinstance(found, BaseExceptionGroup) or id(found) in seen or len(seen) > MAX_CHAIN:
            return False
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return True


def _lines(
    kind: type[BaseException], value: BaseException, trace: TracebackType | None
) -> list[str]:
    """Python's own rendering; without the frames of IPython, which say nothing about the cell."""
    while trace is not None and "<ipython-input" not in trace.tb_frame.f_code.co_filename:
        if "/ipykernel_" in trace.tb_frame.f_code.co_filename:
            break
        trace = trace.tb_next
    try:
        if isinstance(value, BaseExceptionGroup):
            text = "".join(traceback.format_exception(kind, value, trace))
        else:  # of a chain only the last: the whole of it could be endless
            frames = traceback.format_tb(trace)
            text = "".join([*frames, *traceback.format_exception_only(kind, value)])
    except Exception:  # noqa: BLE001 - as above
        text = f"{kind.__name__}: {_text(value)}"
    return text.rstrip("\n").split("\n")


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - as above
        return f"(its text cannot be made: {type(error).__name__})"
