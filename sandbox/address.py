"""Where the Docker engine listens, found with the standard library alone.

Importing the SDK would cost every start, and the reaper needs the address of an engine that may not
even be running.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from pathlib import Path

DEFAULT_ENGINE = "unix:///var/run/docker.sock"
CONNECT_SECONDS = 10.0


def engine_address() -> str:
    """DOCKER_HOST, else the current Docker context's, else the default socket."""
    return os.environ.get("DOCKER_HOST") or _context_address() or DEFAULT_ENGINE


def reachable_engine() -> str | None:
    """The address; None where its socket does not exist or plain HTTP cannot reach it."""
    address = engine_address()
    if address.startswith("unix://"):
        return address if Path(address.removeprefix("unix://")).is_socket() else None
    return address if address.startswith(("tcp://", "http://")) else None


def nobody_listens(address: str) -> str | None:
    """Why a unix socket takes no connection; None when it does, or for other kinds of address."""
    if not address.startswith("unix://"):
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_SECONDS)
        try:
            probe.connect(address.removeprefix("unix://"))
        except OSError as error:
            return error.strerror or str(error)
    return None


def may_not_connect(address: str) -> str | None:
    """What to do where the socket is there but not for this user; None where that is not it."""
    path = Path(address.removeprefix("unix://"))
    try:
        if not path.is_socket() or os.access(path, os.R_OK | os.W_OK):
            return None
        group = path.group()
    except (OSError, KeyError):  # not to be seen; a group without a name
        return None
    if group == "root":
        return f"only root may use {path}: run as root, or use --sandbox bubblewrap (Linux)"
    return (
        f"this user may not use {path}: sudo usermod -aG {group} $USER and log in again, or use "
        "--sandbox bubblewrap (Linux)"
    )


def _context_address() -> str | None:
    """The endpoint of the current context, from the files that the Docker client keeps."""
    try:
        home = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
        name = os.environ.get("DOCKER_CONTEXT") or json.loads(
            (home / "config.json").read_text()
        ).get("currentContext")
        if not name or name == "default":
            return None
        digest = hashlib.sha256(name.encode()).hexdigest()
        meta = json.loads((home / "contexts" / "meta" / digest / "meta.json").read_text())
        return str(meta["Endpoints"]["docker"]["Host"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        return None  # RuntimeError: this user has no home
