"""What a cell left in the work directory: new and changed files, and the pictures among them.

The directory is the model's: symbolic links, devices, pipes, endless trees and files that grow are
all possible, so nothing is followed, everything is counted and only regular files are opened.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from .sniff import SUFFIXES

MAX_ENTRIES = 5000
MAX_DEPTH = 8
MAX_LISTED = 200
MAX_PICTURE_BYTES = 64 * 1024 * 1024

State = tuple[int, int, int]
"""Modification time in ns, size, inode."""


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    """Relative, `/` between parts."""
    bytes: int

    @property
    def is_picture(self) -> bool:
        return os.path.splitext(self.path)[1].lower() in SUFFIXES  # noqa: PTH122  (no Path: hot)


class WorkDir:
    """Remembers what was there; each `changes` compares with the last."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, State] = {}

    def mend(self) -> None:
        """Where the directory is ours, a cell may have locked itself and us out of it."""
        if not os.access(self._root, os.R_OK | os.W_OK | os.X_OK):
            with contextlib.suppress(OSError):
                os.chmod(self._root, 0o755)  # noqa: PTH101

    def changes(self) -> list[Change]:
        """Files made or changed since the last call, oldest first. Hidden ones do not count."""
        self.mend()
        now = self._scan()
        changed = [
            (state[0], Change(path, state[1]))
            for path, state in now.items()
            if self._known.get(path) != state
        ]
        self._known = now
        return [change for _, change in sorted(changed, key=lambda pair: (pair[0], pair[1].path))]

    def read(self, path: str) -> bytes | None:
        """A regular file's bytes; None when it is none, or is too large or gone."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        try:
            handle = os.open(Path(self._root, path), flags)
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= MAX_PICTURE_BYTES:
                return None
            return file.read(MAX_PICTURE_BYTES)

    def _scan(self) -> dict[str, State]:
        found: dict[str, State] = {}
        left = [("", 0)]
        budget = MAX_ENTRIES
        while left and budget > 0:
            prefix, depth = left.pop()
            try:
                entries = os.scandir(self._root + "/" + prefix)
            except OSError:
                continue
            with entries:
                for entry in entries:
                    budget -= 1
                    if budget <= 0:
                        break
                    self._note(entry, prefix, depth, found, left)
        return found

    def _note(
        self,
        entry: os.DirEntry[str],
        prefix: str,
        depth: int,
        found: dict[str, State],
        left: list[tuple[str, int]],
    ) -> None:
        if entry.name.startswith(".") or entry.name == "__pycache__":
            return
        path = prefix + entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if depth < MAX_DEPTH:
                    left.append((path + "/", depth + 1))
            elif entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            return
