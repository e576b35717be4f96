"""`human`: a person at the terminal, asked as a model is: what can be solved by hand, and how.

What is asked goes to whoever shows notes; pictures are put into a folder and named by path. The
reply comes from standard input, a terminal or a pipe, and ends with a line that holds a single `.`
or with the end of input (Ctrl-D). Input that ends before a reply begins ends the run, resumably.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from agent.files import safe_name
from agent.messages import Image, Message, Reply, Request, Text
from agent.models.completion import estimated_usage
from agent.models.errors import AccessRefused
from agent.showing import visible

NAME = "human"
END = "."
"""The line that ends a reply."""
HELP = (
    "Type your reply; end it with a line that holds a single `.`, or with Ctrl-D. "
    "Ctrl-C stops the run; --resume goes on with it."
)
_MOST = 65_536


class Human:
    """The model `human`; use it in an `async with` block, which keeps the pictures.

    `show` takes a text of one or more lines; `stdin` is a descriptor, standard input's by default.
    """

    name = NAME

    def __init__(self, show: Callable[[str], None], stdin: int | None = None) -> None:
        self._show = show
        self._stdin = stdin
        self._unread = b""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._pictures = count(1)
        self._told: set[str] = set()
        """System messages that the person has seen."""
        self._one_at_a_time = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="pot-human-")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def reply(self, request: Request) -> Reply:
        """What the person types. Its seconds are theirs: they count towards the time limit.

        Raises:
            AccessRefused: standard input is closed, or ended before anything was typed.
        """
        async with self._one_at_a_time:
            where = f"{request.sample_id} · repeat {request.repeat} · turn {request.turn}"
            self._show(f"\n── {visible(where)}")
            for message in _new(request.messages):
                self._show_message(message, request.sample_id)
            self._show(f"\n{HELP}")
            begin = time.monotonic()
            text = await self._typed()
            reply = Reply(text, finish_reason="stop", seconds=time.monotonic() - begin)
        return replace(reply, usage=estimated_usage(request, reply))

    def _show_message(self, message: Message, sample_id: str) -> None:
        if message.role == "system":
            if message.text in self._told:
                return
            self._told.add(message.text)
            self._show(f"{visible(message.text)}\n")
            return
        for part in message.parts:
            if isinstance(part, Text):
                self._show(visible(part.text))
            else:
                self._show(f"  picture: {self._kept(part, sample_id)}")

    def _kept(self, image: Image, sample_id: str) -> Path:
        assert self._folder is not None, "Human is used outside of its `async with` block"
        folder = Path(self._folder.name) / safe_name(sample_id)
        folder.mkdir(exist_ok=True)
        suffix = "jpg" if image.mime == "image/jpeg" else "png"
        path = folder / f"{next(self._pictures)}-{safe_name(Path(image.name).stem)}.{suffix}"
        path.write_bytes(image.data)
        return path

    async def _typed(self) -> str:
        lines: list[str] = []
        while (line := await self._line()) is not None:
            if line.strip() == END:
                break
            lines.append(line)
        else:
            if not lines:
                raise AccessRefused("human: expected a reply, standard input has ended")
        return "\n".join(lines)

    async def _line(self) -> str | None:
        """The next line; None at the end of input, which a terminal may go on after."""
        while b"\n" not in self._unread:
            more = await _read(self._descriptor())
            if not more:
                break
            self._unread += more
        if not self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        return line.rstrip(b"\r").decode("utf-8", "replace")

    def _descriptor(self) -> int:
        if self._stdin is not None:
            return self._stdin
        try:
            return sys.stdin.fileno()
        except (AttributeError, ValueError, OSError):
            text = "human: expected a terminal or a pipe as standard input, found it closed"
            raise AccessRefused(text) from None


def _new(messages: Sequence[Message]) -> Sequence[Message]:
    """What came after the person's last reply; all of it before the first."""
    said = [number for number, message in enumerate(messages) if message.role == "assistant"]
    return messages[said[-1] + 1 :] if said else messages


async def _read(descriptor: int) -> bytes:
    """What is there, once something is; nothing at the end. No thread waits, so Ctrl-C ends it."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:
        return os.read(descriptor, _MOST)  # a plain file: always ready, so it cannot be waited for
    try:
        await ready.wait()
        return os.read(descriptor, _MOST)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""  # the terminal is gone
    finally:
        loop.remove_reader(descriptor)
