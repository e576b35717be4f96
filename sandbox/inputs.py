"""Input files on the host side of `/mnt/data`: a per-box folder, read-only, gone with the box.

Modes are set explicitly, so that the box's user can read them whatever umask the runner has.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sandbox.errors import BoxLost, InputRefused
from sandbox.home import cache_home, make_readable
from sandbox.identity import Owner, this_process
from sandbox.spec import InputFile

MAX_PART_BYTES = 255
"""What Linux file systems take for one part of a path."""


def check_inputs(inputs: tuple[InputFile, ...]) -> None:
    """Refuses names that could leave the folder, shadow one another or not exist on a disk.

    Raises:
        InputRefused: names the file and the reason.
    """
    seen: dict[str, str] = {}
    for file in inputs:
        reason = _unsafe(file.name)
        if reason:
            raise InputRefused(f"expected a relative file name, found {file.name!r}: {reason}")
        # Case-folded: the cache home may lie on a disk that does not tell `A.png` from `a.png`.
        key = file.name.casefold()
        if key in seen:
            raise InputRefused(
                f"two input files would be /mnt/data/{file.name} ({seen[key]}); rename one"
            )
        seen[key] = file.name
    for key, name in seen.items():
        parts = key.split("/")
        for n in range(1, len(parts)):
            if "/".join(parts[:n]) in seen:
                raise InputRefused(f"input {name!r} lies in a folder that is itself an input file")


def _unsafe(name: str) -> str | None:
    if not name or name.startswith("/") or "\\" in name:
        return "it is empty, absolute or has a backslash"
    if any(ord(char) < 32 or ord(char) == 127 for char in name):
        return "it has control characters"
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return "a part is empty, `.` or `..`"
        try:
            size = len(part.encode("utf-8"))
        except UnicodeEncodeError:
            return "it is not valid Unicode"
        if size > MAX_PART_BYTES:
            return f"a part is longer than {MAX_PART_BYTES} bytes"
    return None


@contextmanager
def staged(inputs: tuple[InputFile, ...]) -> Generator[Path]:
    """A folder with the input files (0755/0444), removed on exit.

    Raises:
        InputRefused: a name cannot be used.
        BoxLost: the host's disk is full or not writable.
    """
    check_inputs(inputs)
    parent = staging_root()
    folder: Path | None = None
    try:
        try:
            folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{this_process()}."))
            for file in inputs:
                path = folder / file.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.data)
            make_readable(folder)
        except OSError as error:
            raise BoxLost(
                f"input files cannot be laid out in {parent}: {error.strerror}"
            ) from error
        yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def staging_root() -> Path:
    """The folder of all per-box input folders, each named after its owner."""
    root = cache_home() / "inputs"
    root.mkdir(mode=0o755, exist_ok=True)
    return root


def sweep_staged() -> int:
    """Removes input folders whose owner is dead; returns how many."""
    removed = 0
    for folder in staging_root().iterdir():
        owner = Owner.parse(folder.name.rsplit(".", 1)[0])
        if owner is not None and not owner.alive:
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed
