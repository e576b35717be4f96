"""Names that are safe on any disk, and writes that are whole or absent."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import DiskFull, RunDirError

_KEPT = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-.")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))]
)
_LONGEST = 120
"""Characters of a safe name; what is longer ends in a hash instead."""


def safe_name(text: str) -> str:
    """A file name for any text: equal only for equal texts, also where case is ignored.

    `/` becomes `~`; other characters than lower-case ASCII letters, digits, `_`, `-` and `.` become
    `%` and two hex digits for each byte of UTF-8. Long names keep their head and end in `%h` and a
    hash. `read_name` undoes the short ones.
    """
    name = "".join(_kept(char) for char in text)
    if not name:
        return "%"
    if name[0] == "." or name.split(".")[0] in _DEVICES:
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if len(name) > _LONGEST:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        name = f"{name[: _LONGEST - 34]}%h{digest}"
    return name


def _kept(char: str) -> str:
    if char in _KEPT:
        return char
    if char == "/":
        return "~"
    return "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that a crash leaves the old one or the new one, never a part.

    Raises:
        DiskFull: no space or quota left; RunDirError: it cannot be written for another reason.
        Nothing is changed then.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    with faults_named(path.parent):
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def faults_named(folder: Path) -> Generator[None]:
    """Turns what the system says of a write into one line with the folder.

    Raises:
        DiskFull: no space or quota left. RunDirError: gone, read-only, no permission, broken.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise DiskFull(f"no space left under {folder}: free some") from error
        raise RunDirError(f"{folder}: cannot be written ({error.strerror})") from error


def is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _sync_folder(folder: Path) -> None:
    """Makes a rename survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
