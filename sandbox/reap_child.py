"""Removes what a dead runner left: runs as a tiny process of its own, started by `sandbox.reaper`.

Standard library only and no import of ours: it is started as a plain file with `-I -S`, waits on a
pipe for the runner's death, and talks to the Docker engine over its socket. The runner imports the
same functions for the sweep at its start.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

REQUEST_SECONDS = 20.0
QUIET_SECONDS = 2.5
"""A create that the engine was still working on when the runner died shows up within this time."""
REAP_SECONDS = 120.0
RESTART_SECONDS = 40.0
GROUP_SECONDS = 5.0
OWNER_MARK = "POTRUNNER_OWNER"
"""In the environment of what a wall starts on the host; the inside of a box does not get it."""
FOLDER_PREFIX = "potrunner-"
OWNER_FILE = ".owner"
"""Temporary folders of boxes have short names (socket paths are limited), so it stands inside."""


class Engine:
    """The few requests that removing containers takes. Every failure is an `OSError`."""

    def __init__(self, address: str) -> None:
        self._address = address

    def containers(self, labels: list[str]) -> list[dict[str, Any]]:
        """All containers, running or not, that carry every label (`key` or `key=value`)."""
        filters = quote(json.dumps({"label": labels}))
        status, body = self._request("GET", f"/containers/json?all=1&filters={filters}")
        if status != 200:
            raise OSError(f"the engine answered {status}")
        found: list[dict[str, Any]] = json.loads(body)
        return found

    def remove(self, identifier: str, *, paused: bool) -> None:
        """Removes a container in any state; one that is already gone is no error."""
        if paused:
            self._request("POST", f"/containers/{identifier}/unpause")
        self._request("DELETE", f"/containers/{identifier}?force=1&v=1")

    def _request(self, method: str, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("localhost", timeout=REQUEST_SECONDS)
        connection.sock = self._connect()
        try:
            connection.request(method, path, headers={"Connection": "close"})
            response = connection.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise OSError(f"no answer in HTTP: {error}") from error
        finally:
            connection.close()

    def _connect(self) -> socket.socket:
        parts = urlsplit(self._address)
        if parts.scheme == "unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(REQUEST_SECONDS)
            try:
                sock.connect(parts.path)
            except OSError:
                sock.close()
                raise
            return sock
        if parts.scheme in ("tcp", "http") and parts.hostname:
            return socket.create_connection((parts.hostname, parts.port or 2375), REQUEST_SECONDS)
        raise OSError(f"no way to reach {self._address}")


def remove_group(folder: Path, seconds: float = GROUP_SECONDS) -> None:
    """Kills every process of a control group and removes it; gives up after a while."""
    deadline = time.monotonic() + seconds
    while folder.is_dir():
        with contextlib.suppress(OSError):
            for pid in (folder / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                return  # left to the sweep of a later start
            time.sleep(0.005)


def marked_processes() -> list[tuple[int, str]]:
    """Processes that a runner started for its boxes, and the owner that is written on each."""
    found: list[tuple[int, str]] = []
    for folder in Path("/proc").glob("[0-9]*"):
        # Gone meanwhile, or another user's: neither is for us to end.
        with contextlib.suppress(OSError):
            for entry in (folder / "environ").read_bytes().split(b"\0"):
                if entry.startswith(OWNER_MARK.encode() + b"="):
                    owner = entry.partition(b"=")[2].decode("ascii", "replace")
                    found.append((int(folder.name), owner))
    return found


def kill_marked(owner: str) -> None:
    """bwrap dies with its runner; a child that it had just forked waits for it for ever."""
    for pid, marked in marked_processes():
        if marked == owner:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def owned_folders(parent: Path) -> list[tuple[Path, str]]:
    """Temporary folders of boxes, and the owner that is written in each."""
    found: list[tuple[Path, str]] = []
    for folder in parent.glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found.append((folder, (folder / OWNER_FILE).read_text()))
    return found


def _reap_containers(engine: Engine, labels: list[str]) -> None:
    """Until the engine has shown none for a while, so that late creations are caught."""
    end = time.monotonic() + REAP_SECONDS
    quiet_until = time.monotonic() + QUIET_SECONDS
    while time.monotonic() < min(end, quiet_until):
        try:
            found = engine.containers(labels)
            if found:
                quiet_until = time.monotonic() + QUIET_SECONDS
                _remove_all(engine, found)
        except OSError:
            # Restarting, perhaps: containers that survive a restart must still be removed.
            quiet_until = time.monotonic() + QUIET_SECONDS
            end = min(end, time.monotonic() + RESTART_SECONDS)
        time.sleep(0.2)


def _remove_all(engine: Engine, found: list[dict[str, Any]]) -> None:
    """At once: a loaded engine takes a second for each. What fails is found again."""

    def remove(container: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            engine.remove(container["Id"], paused=container.get("State") == "paused")

    threads = [threading.Thread(target=remove, args=(container,)) for container in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _main() -> None:
    for name in ("SIGINT", "SIGHUP", "SIGQUIT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    orders = json.loads(sys.stdin.buffer.readline())
    if not sys.stdin.buffer.read().endswith(b"done\n"):  # else it left in good order
        _reap(orders)


def _reap(orders: dict[str, Any]) -> None:
    kill_marked(orders["owner"])
    if orders["engine"]:
        _reap_containers(Engine(orders["engine"]), orders["labels"])
    for parent, prefix in orders["folders"]:
        for folder in Path(parent).glob(f"{prefix}*"):
            shutil.rmtree(folder, ignore_errors=True)
    for parent, prefix in orders["groups"]:
        for folder in Path(parent).glob(f"{prefix}*"):
            remove_group(folder)
    time.sleep(0.2)
    kill_marked(orders["owner"])  # one that was between fork and exec
    for parent in orders["temporary"]:
        for folder, owner in owned_folders(Path(parent)):
            if owner == orders["owner"]:
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _main()
