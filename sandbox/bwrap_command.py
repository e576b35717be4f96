"""The bubblewrap command line of one box: namespaces, mounts, environment, first program.

Two ways to end up without rights. An ordinary user makes a user namespace and is uid 1000 in it.
Root needs no user namespace: the box gets a uid of its own that owns nothing on the host, so that
even a file of root's that everybody may read stays out of reach unless it is mounted.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox.hostpython import Layout
from sandbox.launch import ENVIRONMENT, PYTHON_FLAGS, SUPERVISOR_MOUNT
from sandbox.spec import Limits

MIB = 1 << 20
Flavour = Literal["own_uid", "user_namespace"]

SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64")
SYSTEM_FILES = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "mime.types", "fonts")
"""In /etc: what finds shared libraries, commands and fonts."""
ETC = {
    "hosts": "127.0.0.1 localhost box\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


@dataclass(frozen=True, slots=True)
class Place:
    """What differs from box to box."""

    supervisor: Path
    inputs: Path
    uid: int
    """In the host's numbering for `own_uid`; ignored otherwise."""
    groups: tuple[tuple[str, str], ...]
    """(host folder, box path) of the control group's counters."""


def arguments(
    flavour: Flavour, layout: Layout, limits: Limits, place: Place, *, nested: bool
) -> tuple[list[str], list[tuple[str, str]]]:
    """Options for bwrap, and (text, box path) of small files that go in by descriptor.

    `nested` forbids user namespaces inside (`--disable-userns`); not every host can.
    """
    uid = place.uid if flavour == "own_uid" else 1000
    options = [*_namespaces(flavour, nested=nested), *_folders(layout), *_system()]
    for source, target in layout.binds:
        options += ["--ro-bind", source, target]
    for folder in layout.hidden_folders:
        options += ["--perms", "0555", "--tmpfs", folder, "--remount-ro", folder]
    for file in layout.hidden_files:
        options += ["--ro-bind", "/dev/null", file]
    for target, link in layout.links:
        options += ["--symlink", target, link]
    options += ["--ro-bind", str(place.supervisor), SUPERVISOR_MOUNT]
    options += ["--ro-bind", str(place.inputs), "/mnt/data"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for source, target in place.groups:
        options += ["--ro-bind", source, target]
    options += _scratch("/work", limits.work_mb, "0777")
    options += _scratch("/tmp", limits.tmp_mb, "1777")
    options += _scratch("/dev/shm", limits.shm_mb, "1777")
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/work"]
    options += _environment(layout)
    return options, [*layout.files, *_accounts(uid), *((v, f"/etc/{k}") for k, v in ETC.items())]


def program(flavour: Flavour, uid: int) -> list[str]:
    """The box's first program; for `own_uid` through `setpriv`, which drops what root had."""
    start = ["/usr/local/venv/bin/python3", *PYTHON_FLAGS, SUPERVISOR_MOUNT]
    if flavour == "user_namespace":
        return start
    drop = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    drop += ["--bounding-set=-all", "--inh-caps=-all"]
    # A change of uid clears the signal that bwrap asked for; without it a killed bwrap would leave
    # the box to notice the end of its input by itself.
    return [str(setpriv()), *drop, "--pdeathsig=KILL", "--", *start]


def setpriv() -> str | None:
    """util-linux's program, on every ordinary Linux."""
    return shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin")


def _namespaces(flavour: Flavour, *, nested: bool) -> list[str]:
    options = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    options += ["--unshare-cgroup-try", "--hostname", "box"]
    # As PID 1 itself: bwrap's own would keep the stream's descriptors open to forgery.
    options += ["--as-pid-1", "--die-with-parent", "--new-session"]
    if flavour == "own_uid":
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            options += ["--cap-add", capability]
        return options
    options += ["--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"]
    return [*options, "--disable-userns"] if nested else options


def _folders(layout: Layout) -> list[str]:
    """Every folder above a mount or link, said outright: bwrap would make some for root alone."""
    targets = [target for _source, target in (*layout.binds, *layout.links, *layout.files)]
    targets += [SUPERVISOR_MOUNT, "/mnt/data", "/sys/fs/cgroup/memory", "/etc/hosts"]
    parents = {str(parent) for target in targets for parent in Path(target).parents}
    return [
        option for path in sorted(parents - {"/"}) for option in ("--perms", "0755", "--dir", path)
    ]


def _system() -> list[str]:
    options: list[str] = []
    for entry in sorted(Path("/usr").iterdir()):
        # What an administrator or an image put into `local` is nobody's business in the box: our
        # own Python and packages take its place.
        if entry.name in ("local", "src"):
            continue
        if entry.is_symlink():
            options += ["--symlink", str(entry.readlink()), str(entry)]
        elif entry.is_dir():
            options += ["--ro-bind", str(entry), str(entry)]
    for name in SYSTEM_FOLDERS:
        folder = Path("/") / name
        if folder.is_symlink():
            options += ["--symlink", str(folder.readlink()), f"/{name}"]
        elif folder.is_dir():
            options += ["--ro-bind", f"/{name}", f"/{name}"]
    options += ["--ro-bind-try", "/nix/store", "/nix/store"]
    for name in SYSTEM_FILES:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return options


def _scratch(path: str, megabytes: int, mode: str) -> Iterable[str]:
    return ["--perms", mode, "--size", str(megabytes * MIB), "--tmpfs", path]


def _environment(layout: Layout) -> list[str]:
    values = {**ENVIRONMENT, "PATH": "/usr/local/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    if layout.library_path:
        values["LD_LIBRARY_PATH"] = layout.library_path
    options = ["--clearenv"]
    for name, value in values.items():
        options += ["--setenv", name, value]
    return options


def _accounts(uid: int) -> list[tuple[str, str]]:
    return [
        (f"root:x:0:0:root:/:/bin/sh\nbox:x:{uid}:{uid}:box:/work:/bin/sh\n", "/etc/passwd"),
        (f"root:x:0:\nbox:x:{uid}:\n", "/etc/group"),
    ]
