"""Keeps the whole text of a cell in a file of the box, once it is more than the model is shown."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024
"""A file grows no further, so that a loop that prints for ever cannot fill the disk."""
KEPT = 4
"""Files of so many cells back are kept."""


class FullText:
    """One cell's text; nothing is written until it exceeds `threshold` characters."""

    def __init__(self, directory: Path, cell: int, threshold: int) -> None:
        self._path = directory / f"cell_{cell}_output.txt"
        self._old = directory / f"cell_{cell - KEPT}_output.txt"
        self._threshold = threshold
        self._early: list[str] = []
        self._chars = 0
        self._file: int | None = None
        self._written = 0
        self.path: str | None = None
        """The file, when there is one."""

    def add(self, text: str) -> None:
        self._chars += len(text)
        if self._file is not None:
            self._write(text)
        elif self._written == 0:
            self._early.append(text)
            if self._chars > self._threshold:
                self._open()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> None:
        early = "".join(self._early)
        self._early.clear()
        self._written = 1
        with contextlib.suppress(OSError):
            self._old.unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(self._path, flags, 0o644)
            self.path = str(self._path)
            self._write(early)

    def _write(self, text: str) -> None:
        """A full disk or a full file ends the copy; the model still sees head and tail."""
        assert self._file is not None
        data = text.encode("utf-8", "replace")[: MAX_BYTES - self._written]
        try:
            self._written += os.write(self._file, data)
        except OSError:
            self._written = MAX_BYTES
        if self._written >= MAX_BYTES:
            self.close()
