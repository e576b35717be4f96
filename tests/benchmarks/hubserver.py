"""A small Hub on this machine: real HTTP with the endpoints and headers that the client uses.

    GET  /api/datasets/ORG/NAME/revision/REV   what commit that is, and its files
    GET  /api/datasets/ORG/NAME/tree/COMMIT    names and sizes
    HEAD, GET /datasets/ORG/NAME/resolve/COMMIT/PATH   a file, with ETag and X-Repo-Commit

What real servers do wrong is a `Fault`, which then answers in place of the file or of everything.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
REPO = "ytz009/CwI-Bench"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is answered instead; `files_only` leaves the listing as it is, as gated data do."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    files_only: bool = False
    cut: bool = False
    """Half of a file is sent, then the connection ends."""
    seconds: float = 0.0
    """Before anything is said."""
    late: bool = False
    """Nothing else is wrong."""


@dataclass(slots=True)
class Hub:
    """The data set that is served, and what was asked."""

    folder: Path
    url: str = ""
    key: str | None = None
    """A bearer token that is asked for."""
    fault: Fault | None = None
    asked: list[str] = field(default_factory=list[str])

    def files(self) -> dict[str, bytes]:
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in found}


GATED = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to dataset is restricted."}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what was asked is kept instead."""

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.hub.asked.append(f"{self.command} {path}")
        fault = self.server.hub.fault
        if fault and (not fault.files_only or "/resolve/" in path):
            time.sleep(fault.seconds)
            if not (fault.cut or fault.late):
                self._send(fault.status, b"no", fault.headers)
                return
        key = self.server.hub.key
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self._send(401, b"no", GATED)
            return
        self._found(path, cut=bool(fault and fault.cut and self.command == "GET"))

    def _found(self, path: str, *, cut: bool) -> None:
        about, files = f"/api/datasets/{REPO}", f"/datasets/{REPO}/resolve/"
        if path.startswith((f"{about}/revision/", f"{about}/tree/")):
            kind, _, revision = path.removeprefix(f"{about}/").partition("/")
            if revision not in ("main", "v1", COMMIT):
                self._send(404, b"no", {"X-Error-Code": "RevisionNotFound"})
                return
            self._json(self._commit() if kind == "revision" else self._tree())
            return
        commit, _, name = path.removeprefix(files).partition("/")
        data = self.server.hub.files().get(name)
        if not path.startswith(files):
            self._send(404, b"no", {"X-Error-Code": "RepoNotFound"})
        elif data is None or commit not in ("main", "v1", COMMIT):
            self._send(404, b"no", {"X-Error-Code": "EntryNotFound"})
        else:
            self._file(data, cut=cut)

    def _commit(self) -> dict[str, Any]:
        names = [{"rfilename": name} for name in self.server.hub.files()]
        return {"_id": "1", "id": REPO, "sha": COMMIT, "private": False, "siblings": names}

    def _tree(self) -> list[dict[str, Any]]:
        return [
            {"type": "file", "path": name, "size": len(data), "oid": _etag(data)}
            for name, data in self.server.hub.files().items()
        ]

    def _file(self, data: bytes, *, cut: bool) -> None:
        headers = {
            "ETag": f'"{_etag(data)}"',
            "X-Repo-Commit": COMMIT,
            "Accept-Ranges": "bytes",
        }
        start = 0
        if (asked := self.headers.get("Range", "")).startswith("bytes="):
            start = int(asked.removeprefix("bytes=").split("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        body = data[start:]
        self.send_response(206 if start else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = cut

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving(folder: Path) -> Generator[Hub]:
    """Serves a folder as the data set `REPO`, whose main branch is at `COMMIT`."""
    hub = Hub(folder)
    with _Server(hub) as server:
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join(30)


def _etag(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
