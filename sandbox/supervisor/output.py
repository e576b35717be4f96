"""Collects what one cell puts out: two pipes, Jupyter messages, saved pictures."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from . import bundle
from .fulltext import FullText
from .items import Text
from .reactor import Reactor
from .screen import Screen, one_name
from .shape import as_dict, as_list

_CHUNK = 65536
_MAX_DRAIN = 8 * 1024 * 1024
"""A drain stops here: a child that floods the pipe must not hold the supervisor."""


class Output:
    """One cell's outputs while it runs. `on_change` is called whenever something arrived."""

    def __init__(
        self,
        reactor: Reactor,
        screen: Screen,
        full_text: FullText,
        on_change: Callable[[], None],
    ) -> None:
        self._reactor = reactor
        self.screen = screen
        self.full_text = full_text
        self._on_change = on_change
        self.notes: list[str] = []
        self._pipes: dict[str, int] = {}
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: decoder("replace") for name in ("stdout", "stderr")}

    def open(self) -> tuple[int, int]:
        """Makes the pipes; returns the ends for the kernel, which the caller closes."""
        ends: list[int] = []
        for name in self._decoders:
            reading, writing = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(reading, False)
            self._pipes[name] = reading
            self._reactor.watch(reading, partial(self._read, name))
            ends.append(writing)
        return ends[0], ends[1]

    def close(self) -> None:
        """Who still holds the other ends writes into nothing."""
        for name in tuple(self._pipes):
            self._shut(name)
        self.full_text.close()

    def drain(self) -> None:
        """Takes everything that lies in the pipes now."""
        for name in tuple(self._pipes):
            taken = 0
            while taken < _MAX_DRAIN and (count := self._read(name)):
                taken += count

    def message(self, kind: str, message: dict[str, Any]) -> None:
        """One iopub message of this cell. Anything of a wrong shape shows nothing."""
        content = message["content"]
        number = str(message["header"].get("msg_id"))
        if kind in ("display_data", "execute_result", "update_display_data"):
            self._display(kind, number, content)
        elif kind == "error":
            lines = [str(line) for line in as_list(content.get("traceback"))]
            name, value = str(content.get("ename", "")), str(content.get("evalue", ""))
            self.screen.fail(number, name, value, "\n".join(lines))
            self.full_text.add("\n".join(lines))
        elif kind == "clear_output":
            self.screen.clear(number, wait=content.get("wait") is True)
        elif kind == "stream":
            # Not ours to expect (the streams are pipes), but a library may send one.
            self.screen.write(_stream(content.get("name")), str(content.get("text", "")))
        else:
            return
        self._on_change()

    def fail_unless_shown(self, content: dict[str, Any]) -> None:
        """The error of a reply, where no message has shown it: a cell never fails in silence, nor
        under another's name."""
        name = one_name(str(content.get("ename") or ""))
        shown = self.screen.failures
        # A value that could not be displayed is no failure of the code: its reply has no name.
        if name in shown or (shown and name in ("", "NoneType")):
            return
        value = str(content.get("evalue", "the traceback could not be shown"))
        lines = [str(line) for line in as_list(content.get("traceback"))]
        name = name or "Error"
        self.screen.fail("", name, value, "\n".join(lines) or f"{name}: {value}")

    def note(self, text: str) -> None:
        """Something the model is told beside the outputs; each once."""
        if text not in self.notes:
            self.notes.append(text)

    def _display(self, kind: str, number: str, content: dict[str, Any]) -> None:
        data = as_dict(content.get("data"))
        display_id = as_dict(content.get("transient")).get("display_id")
        item, note = bundle.choose(data, str(display_id) if display_id else None)
        if note:
            self.note(note)
        if size := bundle.shrunk_from(content.get("metadata")):
            self.note(f"A picture of {size[0]}x{size[1]} pixels was shrunk to be shown.")
        if isinstance(item, Text):
            self.full_text.add(item.text + "\n")
        if isinstance(item, Text) and not item.text and not item.display_id:
            return self.screen.forget(number)
        if kind == "update_display_data" and item.display_id:
            return self.screen.update(number, item)
        return self.screen.fill(number, item)

    def _read(self, name: str) -> int:
        """One chunk; the number of bytes, 0 when there are none now."""
        try:
            data = os.read(self._pipes[name], _CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self._shut(name)
            return 0
        text = self._decoders[name].decode(data)
        self.screen.write(name, text)
        self.full_text.add(text)
        self._on_change()
        return len(data)

    def _shut(self, name: str) -> None:
        descriptor = self._pipes.pop(name)
        self._reactor.unwatch(descriptor)
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _stream(name: Any) -> str:
    return "stderr" if name == "stderr" else "stdout"


def full_text_directory(state_dir: Path) -> Path:
    """Where the model finds the whole text of a cell that printed too much."""
    directory = state_dir.parent / "outputs"
    with contextlib.suppress(OSError):
        directory.mkdir(exist_ok=True)
    return directory
