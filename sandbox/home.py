"""Where potrunner keeps what boxes mount: a folder of the user's cache home.

Colima and Docker Desktop share only `$HOME` with their engine, so nothing that a box mounts may lie
in `/tmp` or in site-packages: input files and a copy of the supervisor go here.
"""

from __future__ import annotations

import compileall
import errno
import hashlib
import os
import py_compile
import shutil
import tempfile
from pathlib import Path

from sandbox.errors import SandboxUnavailable

_UNREADABLE = ("Permission denied", "can't open file", "can't find '__main__' module")
"""In the words of Python in the box."""
LONGEST_TEMPORARY = 50
"""Bytes; a box's sockets, and those of `multiprocessing` in it, lie below with up to 55 more."""


def cache_home() -> Path:
    """`$XDG_CACHE_HOME/potrunner` or `~/.cache/potrunner`, made if missing.

    Raises:
        SandboxUnavailable: the folder cannot be made.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        home = (Path(base) if base.startswith("/") else Path.home() / ".cache") / "potrunner"
    except RuntimeError as error:
        raise SandboxUnavailable(
            "expected a home directory, found none for this user; set HOME or XDG_CACHE_HOME"
        ) from error
    try:
        # The working directory may be a box's input or gone: a relative HOME is nobody's home.
        if not home.is_absolute():
            raise NotADirectoryError(errno.ENOTDIR, "not an absolute path")
        home.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise SandboxUnavailable(
            f"expected a writable cache folder, found {home}: {error.strerror}; set XDG_CACHE_HOME "
            "to a folder under your home directory"
        ) from error
    return home


def temporary_home() -> Path:
    """Where boxes on the host itself have their temporary folders: TMPDIR, or a folder with a
    shorter path where the boxes' sockets would not fit into the 107 bytes that the system allows.

    Raises:
        SandboxUnavailable: there is no such folder.
    """
    try:
        candidates = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    except FileNotFoundError as error:  # none that can be written
        raise SandboxUnavailable(f"expected a folder for temporary files: {error}") from error
    for path in candidates:
        if len(os.fsencode(path)) <= LONGEST_TEMPORARY and os.access(path, os.W_OK | os.X_OK):
            return Path(path)
    raise SandboxUnavailable(
        f"expected a temporary folder with a path of at most {LONGEST_TEMPORARY} bytes, found "
        f"{candidates[0]}; set TMPDIR"
    )


def unreadable_hint(said: str) -> str:
    """What to do where a box cannot read what it mounts from the cache home, although the modes
    allow it; empty when `said` is of something else."""
    if not any(sign in said for sign in _UNREADABLE):
        return ""
    home = cache_home()
    return (
        f"; the box cannot read {home}: under SELinux run: chcon -Rt container_file_t {home} · "
        "with Docker Desktop or Colima share that folder, or set XDG_CACHE_HOME to a shared one"
    )


def staged_supervisor(source: Path) -> Path:
    """A read-only copy of the supervisor named by its content, with bytecode beside the sources."""
    files = sorted(source.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(source)}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    target = cache_home() / "supervisor" / digest.hexdigest()[:20]
    if not target.is_dir():
        _publish(source, files, target)
    return target


def _publish(source: Path, files: list[Path], target: Path) -> None:
    """Copies into a sibling and renames, so that no box ever sees half a supervisor."""
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=".draft-"))
    try:
        for file in files:
            copy = draft / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
        # Unchecked: the box mounts the folder read-only and could neither verify nor rewrite it.
        compileall.compile_dir(
            draft,
            quiet=2,
            stripdir=str(draft),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        make_readable(draft)
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.is_dir():  # else another process published the same content first
            raise


def remember(path: Path, text: str) -> None:
    """Writes a file of the cache home by rename; many processes may do so at once."""
    path.parent.mkdir(mode=0o755, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o644)
    draft.rename(path)


def make_readable(folder: Path) -> None:
    """0755 for folders and 0444 for files, whatever the umask was when they were made."""
    for parent, _folders, files in os.walk(folder):
        Path(parent).chmod(0o755)
        for name in files:
            (Path(parent) / name).chmod(0o444)
