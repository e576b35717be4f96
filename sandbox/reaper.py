"""No orphans: a guard that outlives the runner, and a sweep of what earlier runners left.

A box ends by itself when its runner dies, because its stream closes. What that cannot end (killed
between create and start, a paused box) the guard's child removes: it lives in a session of its own,
holds one end of a pipe, and acts when the pipe closes without a farewell. Only what carries our
label and the runner's own identity is touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.address import reachable_engine
from sandbox.cgroups import PREFIX, group_parents, sweep_groups
from sandbox.errors import SandboxUnavailable
from sandbox.home import temporary_home
from sandbox.identity import LABEL, Owner, owner_labels, this_process
from sandbox.inputs import staging_root, sweep_staged
from sandbox.reap_child import Engine, marked_processes, owned_folders

FAREWELL_SECONDS = 5.0
GONE_SECONDS = 10.0
"""How long the end of a block waits for the engine to finish removing its last boxes."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep removed."""

    containers: int = 0
    folders: int = 0
    groups: int = 0


@contextmanager
def guard(run_id: str) -> Generator[Swept]:
    """Sweeps, then watches over this process until the block ends. Enter once per process.

    Yields what the sweep removed. When the block has ended no container of the run is left; where
    the engine does not answer at that time the child goes on trying. Nothing here needs Docker;
    without an engine the guard looks after folders and control groups only.
    """
    swept = sweep()
    orders = _orders()
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("reap_child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        start_new_session=True,  # Ctrl-C and the end of the terminal must not reach it
    )
    assert child.stdin is not None, "a pipe was asked for"
    try:
        with child.stdin as pipe:
            pipe.write(json.dumps(orders).encode() + b"\n")
            pipe.flush()
            try:
                yield swept
            finally:
                if _all_gone(orders["engine"], [*orders["labels"], f"{LABEL}.run={run_id}"]):
                    with contextlib.suppress(OSError):  # the child was killed: nobody to tell
                        pipe.write(b"done\n")
                        pipe.flush()
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(FAREWELL_SECONDS)


def _all_gone(address: str | None, labels: list[str]) -> bool:
    """Whether the engine has no box of these labels any more, after a last attempt to remove."""
    if address is None:
        return True
    engine = Engine(address)
    deadline = time.monotonic() + GONE_SECONDS
    try:
        while found := engine.containers(labels):
            if time.monotonic() > deadline:
                return False
            for container in found:
                engine.remove(container["Id"], paused=container.get("State") == "paused")
            time.sleep(0.02)
    except OSError:
        return False
    return True


def sweep() -> Swept:
    """Removes containers, input folders and control groups of dead runners of this host."""
    _sweep_processes()
    folders = 0
    for sweep_some in (_sweep_temporary, sweep_staged):
        with contextlib.suppress(SandboxUnavailable, OSError):
            folders += sweep_some()
    return Swept(sweep_containers(reachable_engine()), folders, sweep_groups())


def _sweep_processes() -> None:
    for pid, text in marked_processes():
        owner = Owner.parse(text)
        if owner is not None and not owner.alive:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _sweep_temporary() -> int:
    removed = 0
    for parent in _temporary():
        for folder, text in owned_folders(parent):
            owner = Owner.parse(text)
            if owner is not None and not owner.alive:
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed


def _temporary() -> set[Path]:
    """Where temporary folders of boxes may lie; TMPDIR may have been another then."""
    found: set[Path] = set()
    with contextlib.suppress(OSError, SandboxUnavailable):
        found.add(temporary_home())
        found.add(Path(tempfile.gettempdir()))
    return found


def sweep_containers(address: str | None) -> int:
    """Removes boxes whose owner on this host is dead; 0 when no engine answers."""
    if address is None:
        return 0
    removed = 0
    engine = Engine(address)
    with contextlib.suppress(OSError):
        for container in engine.containers([LABEL]):
            owner = _owner(container.get("Labels") or {})
            if owner is not None and not owner.alive:
                engine.remove(container["Id"], paused=container.get("State") == "paused")
                removed += 1
    return removed


def _owner(labels: dict[str, Any]) -> Owner | None:
    host, pid, start = (str(labels.get(f"{LABEL}.{name}", "")) for name in ("host", "pid", "start"))
    return Owner.parse(f"{host}.{pid}.{start}")


def _orders() -> dict[str, Any]:
    owner = this_process()
    folders: list[list[str]] = []
    with contextlib.suppress(SandboxUnavailable, OSError):
        folders = [[str(staging_root()), f"{owner}."]]
    labels = owner_labels(owner, "")
    del labels[f"{LABEL}.run"]  # a process owns all its boxes, whatever run they are for
    return {
        "owner": str(owner),
        "temporary": [str(folder) for folder in _temporary()],
        "engine": reachable_engine(),
        "labels": [f"{key}={value}" for key, value in labels.items()],
        "folders": folders,
        "groups": [[str(parent), f"{PREFIX}{owner}."] for parent in group_parents()],
    }
