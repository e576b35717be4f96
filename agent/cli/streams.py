"""Standard streams that can always be written to, and the files and pipes a command line names.

A terminal's encoding may lack characters: they are replaced, a question mark is better than a
traceback. A stream that the shell closed is the null device, so that no file of ours gets its
number. What is read has a limit, so that a device without an end is one line and no full memory.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TextIO

from agent.cli.problem import Problem

MOST_TEXT = 64 << 20
"""Bytes of a file of cells or of a reply."""
MOST_RESPONSES = 1 << 30
"""Bytes of a file of saved responses."""
MOST_PICTURE = 512 << 20
"""Bytes of a picture or another file for the box: its work folder holds no more."""


def make_ready() -> None:
    """Called once, before anything is read or written."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # closed by the shell; the null device takes its place
    os.close(number)
    sys.stdin = _there(sys.stdin, 0)
    sys.stdout = _there(sys.stdout, 1)
    sys.stderr = _there(sys.stderr, 2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _there(stream: TextIO | None, number: int) -> TextIO:
    """Python has None for a stream that was closed when it started."""
    return stream or os.fdopen(number, "w" if number else "r", encoding="utf-8")


def read_bytes(name: str | Path, what: str, most: int) -> bytes:
    """A file, or standard input for `-`; `what` is what was expected.

    Raises:
        Problem: it cannot be read, or has more than `most` bytes.
    """
    shown = "standard input" if str(name) == "-" else str(name)
    if str(name) == "-" and sys.stdin.isatty():
        print("pot: reading from the terminal; Ctrl-D ends it", file=sys.stderr)  # noqa: T201
    try:
        if str(name) == "-":
            data = sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(most + 1)
    except OSError as problem:
        raise Problem(f"expected {what}, found {shown}: {problem.strerror}") from None
    if len(data) > most:
        raise Problem(f"expected {what} of at most {most >> 20} MiB, found more in {shown}")
    return data


def read_text(name: str | Path, what: str, most: int = MOST_TEXT) -> str:
    """The same as text, without a byte order mark.

    Raises:
        Problem: as `read_bytes`; it is not UTF-8.
    """
    data = read_bytes(name, what, most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        shown = "standard input" if str(name) == "-" else str(name)
        where = f"{problem.reason} at byte {problem.start}"
        raise Problem(f"expected {what} in UTF-8, found {where} of {shown}") from None
