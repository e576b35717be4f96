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
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

REQUEST_SECONDS = 20.0
QUIET_SECONDS = 3.0
"""A create that the engine was still working on when the runner died shows up within this time."""
REAP_SECONDS = 120.0
RESTART_SECONDS = 40.0
GROUP_SECONDS = 5.0


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


def _reap_containers(engine: Engine, labels: list[str]) -> None:
    """Until the engine has shown none for a while, so that late creations are caught."""
    end = time.monotonic() + REAP_SECONDS
    quiet_until = time.monotonic() + QUIET_SECONDS
    while time.monotonic() < min(end, quiet_until):
        try:
            for container in engine.containers(labels):
                quiet_until = time.monotonic() + QUIET_SECONDS
                engine.remove(container["Id"], paused=container.get("State") == "paused")
        except OSError:
            # Restarting, perhaps: containers that survive a restart must still be removed.
            quiet_until = time.monotonic() + QUIET_SECONDS
            end = min(end, time.monotonic() + RESTART_SECONDS)
        time.sleep(0.2)


def _main() -> None:
    for name in ("SIGINT", "SIGHUP", "SIGQUIT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    orders = json.loads(sys.stdin.buffer.readline())
    if sys.stdin.buffer.read().endswith(b"done\n"):
        return  # the runner left in good order
    if orders["engine"]:
        _reap_containers(Engine(orders["engine"]), orders["labels"])
    for parent, prefix in orders["folders"]:
        for folder in Path(parent).glob(f"{prefix}*"):
            shutil.rmtree(folder, ignore_errors=True)
    for parent, prefix in orders["groups"]:
        for folder in Path(parent).glob(f"{prefix}*"):
            remove_group(folder)


if __name__ == "__main__":
    _main()
