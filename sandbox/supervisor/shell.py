"""The kernel's shell: every exception that ends a cell is published as exactly one error, whatever
it is and whatever the cell did to the means of showing it.

IPython prints some (groups, exceptions whose text cannot be made) to standard error or not at all,
and a lone surrogate in the text loses the whole message. What is not published in spite of all this
(the cell replaced the shell's own methods) goes into the reply, and the supervisor shows that.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.error import UsageError
from traitlets import observe

from . import interpreter
from .failures import attempt, is_plain, lines_of, name_of, short_chain, text_of
from .terminal import encodable

_OURS = os.path.dirname(__file__) + os.sep  # noqa: PTH120


class BoxShell(ZMQInteractiveShell):
    """Shows errors as said above, and does not keep everything that was ever printed or shown."""

    failure: BaseException | None = None
    """What ended the cell's code."""

    def restore_methods(self) -> None:
        """A method that a cell replaced stays so until its end."""
        for name in tuple(vars(self)):
            if callable(getattr(type(self), name, None)):
                delattr(self, name)

    def restore_names(self) -> None:
        """What IPython and Python themselves look up among the cell's names."""
        self.user_ns["__builtins__"] = builtins
        if not isinstance(self.user_ns.get("_oh"), dict):
            self.user_ns["_oh"] = {}
        if not callable(self.user_ns.get("get_ipython", len)):  # what `!` and `%` stand for
            self.user_ns["get_ipython"] = self.get_ipython

    def enable_matplotlib(self, gui: Any = None) -> tuple[str, str]:
        """Our hooks show figures under every backend; there is none to choose."""
        return "agg", "agg"

    @contextmanager
    def _tee(self, channel: str) -> Generator[None]:
        """IPython would copy each written text into a list that is never emptied."""
        yield

    def _format_exception_for_storage(self, *_: Any, **__: Any) -> dict[str, Any]:
        """IPython would render each error a second time and keep it."""
        return {}

    async def run_code(self, code_obj: Any, result: Any = None, *, async_: bool = False) -> bool:
        failed = True
        try:
            failed = await super().run_code(code_obj, result, async_=async_)
        finally:
            interpreter.tidy()  # a recursion limit, say, that would not let the error be shown
            # Kept here: from now on the cell's own objects take part in what IPython does.
            if result is not None and result.error_in_exec is not None:
                self.failure = result.error_in_exec
                if attempt(lambda: bool(result.error_in_exec))[1]:  # IPython asks that next
                    result.error_in_exec = RuntimeError()
        return failed

    def ask_exit(self) -> None:
        """As `exit`: the end of this cell."""
        raise SystemExit

    @observe("exit_now")
    def _update_exit_now(self, change: Any) -> None:
        """The kernel stays, whoever sets it."""

    def system(self, cmd: str) -> None:
        """`!command`. Not at a terminal, as IPython has it: there it would wait for what nobody
        types, and standard error would be standard output."""
        if cmd.rstrip().endswith("&"):
            raise OSError("Background processes not supported.")
        command = self.var_expand(cmd, depth=1)
        sys.stdout.flush()
        sys.stderr.flush()
        code = subprocess.call(command, shell=True, stdin=subprocess.DEVNULL)
        self.user_ns["_exit_code"] = code

    def _get_exc_info(self, exc_tuple: Any = None) -> tuple[Any, Any, Any]:
        """Ends a traceback where our own code begins: the model's line is what it must see."""
        kind, value, trace = super()._get_exc_info(exc_tuple)
        entry = trace
        while entry is not None and entry.tb_next is not None:
            if entry.tb_next.tb_frame.f_code.co_filename.startswith(_OURS):
                entry.tb_next = None
            entry = entry.tb_next
        return kind, value, trace

    def showtraceback(
        self,
        exc_tuple: Any = None,
        filename: str | None = None,
        tb_offset: int | None = None,
        exception_only: bool = False,
        running_compiled_code: bool = False,
    ) -> None:
        try:
            kind, value, trace = self._get_exc_info(exc_tuple)
        except ValueError:
            return print("No traceback available to show.", file=sys.stderr)  # noqa: T201
        with short_chain(value):
            if exception_only or issubclass(kind, UsageError):
                lines = lines_of(value, None)
            elif not is_plain(value) or issubclass(kind, KeyboardInterrupt):
                # After the deadline there is no time for IPython's look at each frame's source.
                lines = lines_of(value, trace)
            else:
                lines = self._rendered(kind, value, trace, tb_offset)
            self._showtraceback(kind, value, lines)
        return None

    def _rendered(self, kind: Any, value: Any, trace: Any, tb_offset: int | None) -> list[str]:
        try:
            if issubclass(kind, SyntaxError):
                frames: Any = traceback.extract_tb(trace)
                return self.SyntaxTB.structured_traceback(kind, value, frames)
            return self.InteractiveTB.structured_traceback(kind, value, trace, tb_offset=tb_offset)
        except Exception:  # noqa: BLE001 - a cell may have put anything there, and given any source
            return lines_of(value, trace)

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        hook: Any = self.displayhook
        if getattr(hook, "msg", None) is not None:
            self._last_traceback_during_displayhook = True  # a value could not be displayed
        content = {
            "ename": name_of(etype),
            "evalue": text_of(evalue),
            "traceback": [encodable(str(line)) for line in stb],
        }
        if hook.session.capture.is_copy:  # a child that the cell forked; it is no kernel
            print("\n".join(content["traceback"]), file=sys.stderr)  # noqa: T201
        hook.session.send(hook.pub_socket, "error", content, hook.parent_header)
        self._last_traceback = stb


def encodable_reply(reply: Any) -> Any:
    """An execute reply whose texts can be sent."""
    if isinstance(reply, dict):
        return {key: encodable_reply(value) for key, value in reply.items()}
    if isinstance(reply, list | tuple):
        return [encodable_reply(value) for value in reply]
    return encodable(reply) if isinstance(reply, str) else reply
