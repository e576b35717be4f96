"""One process at a time in a run directory, and who it is.

The system's own lock (`flock`) where there is one: it ends with its holder, however that ends. Some
network disks give none; there a file that only one process can make stands for it, and what a dead
process of this machine left is taken over.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent.errors import RunDirBusy
from agent.files import faults_named
from sandbox.identity import Owner, this_process

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_MOST = 1000
"""Bytes of a holder's file that are read."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a run."""

    owner: Owner
    host: str
    """Its name, for people."""
    since: str

    @classmethod
    def this(cls) -> Holder:
        now = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        return cls(this_process(), platform.node(), now)

    @classmethod
    def read(cls, data: bytes) -> Holder | None:
        """None for what `data` did not write."""
        try:
            owner, host, since = json.loads(data)
        except (ValueError, TypeError):
            return None
        parsed = Owner.parse(str(owner))
        return cls(parsed, str(host), str(since)) if parsed else None

    def data(self) -> bytes:
        return json.dumps([str(self.owner), self.host, self.since]).encode()

    def __str__(self) -> str:
        return f"process {self.owner.pid} on {self.host} since {self.since}"


@contextmanager
def held(folder: Path) -> Generator[None]:
    """Holds a folder for this process until the block, or the process, ends.

    Raises:
        RunDirBusy: another process holds it; says which, where and since when.
        DiskFull, RunDirError: the folder cannot be written to.
    """
    with faults_named(folder):
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if _locked(handle, folder):
            with faults_named(folder):
                os.ftruncate(handle, 0)
                os.pwrite(handle, Holder.this().data(), 0)
            yield
        else:
            with _held_by_file(folder):
                yield
    finally:
        os.close(handle)


def _locked(handle: int, folder: Path) -> bool:
    """Whether the lock is ours now; False where the disk gives no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _busy(folder, os.pread(handle, _MOST, 0)) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            with faults_named(folder):
                raise
        return False
    return True


@contextmanager
def _held_by_file(folder: Path) -> Generator[None]:
    path, mine = folder / ".held", Holder.this().data()
    with faults_named(folder):
        while not _made(path, mine):
            _take_over(folder, path)
    try:
        yield
    finally:
        if path.exists() and path.read_bytes() == mine:
            path.unlink()


def _made(path: Path, data: bytes) -> bool:
    """Makes the file whole or not at all; False when there is one."""
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        draft.write_bytes(data)
        os.link(draft, path)  # unlike a rename it never replaces
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def _take_over(folder: Path, path: Path) -> None:
    """Takes a dead process's file away.

    Raises:
        RunDirBusy: its process lives, or is of another host and may live.
    """
    try:
        found = path.read_bytes()[:_MOST]
    except FileNotFoundError:
        return  # let go just now
    holder = Holder.read(found)
    if holder is None or holder.owner.alive:
        here = holder is not None and holder.owner.host == this_process().host
        raise _busy(folder, found, "" if here else f"; if it is dead, delete {path}")
    stale = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        path.rename(stale)
    except FileNotFoundError:
        return  # somebody else was quicker
    if stale.read_bytes()[:_MOST] != found and not path.exists():
        stale.rename(path)  # it had been taken over in between: back to whom it belongs
    stale.unlink(missing_ok=True)


def _busy(folder: Path, found: bytes, more: str = "") -> RunDirBusy:
    holder = Holder.read(found)
    who = str(holder) if holder else "another process"
    return RunDirBusy(f"{folder}: in use by {who}; wait for it or stop it{more}")
