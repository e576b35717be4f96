"""A control group of its own for each bubblewrap box: memory, processes and CPU, versions 1 and 2.

Only root can make them as a rule; where it fails the wall has a watchdog instead. The box sees its
own group read-only under `/sys/fs/cgroup`, as in a container, so that the supervisor reads the same
counters on both walls.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.identity import Owner, this_process
from sandbox.reap_child import remove_group
from sandbox.spec import Limits

MIB = 1 << 20
PREFIX = "potrunner-"
PROC = Path("/proc/self")
CONTROLLERS = ("memory", "pids", "cpu")
PERIOD = 100_000
"""Microseconds in which a box may use its share of CPU time."""


NEAR = 16 * MIB
"""Below the limit an allocation may already be refused: pages come in blocks."""
_PEAKS = {
    1: ("memory.max_usage_in_bytes", "memory.limit_in_bytes"),
    2: ("memory.peak", "memory.max"),
}


@dataclass(frozen=True, slots=True)
class Group:
    """The folders of one box's group: one in all (version 2) or one a controller (version 1)."""

    version: int
    folders: dict[str, Path]

    def add(self, pid: int) -> None:
        """Puts a process in; its children follow."""
        for folder in set(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def oom_kills(self) -> int:
        """Processes of the group that the memory limit has killed."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        with contextlib.suppress(OSError):
            for line in (self.folders["memory"] / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def limit_reached(self) -> bool:
        """Whether the group has ever used all of its memory; its processes are killed as well when
        the whole machine runs out."""
        peak, limit = _PEAKS[self.version]
        folder = self.folders["memory"]
        try:
            most = int((folder / peak).read_text())
            return most >= int((folder / limit).read_text()) - NEAR
        except (OSError, ValueError):
            return True  # it cannot be seen here

    def mounts(self) -> list[tuple[str, str]]:
        """(host folder, box path)."""
        if self.version == 2:
            return [(str(self.folders["memory"]), "/sys/fs/cgroup")]
        return [(str(folder), f"/sys/fs/cgroup/{name}") for name, folder in self.folders.items()]

    def remove(self) -> None:
        """Kills what is left in the group and removes it."""
        for folder in set(self.folders.values()):
            remove_group(folder)


def make_group(limits: Limits, proc: Path = PROC) -> Group:
    """A new group with the limits set.

    Raises:
        OSError: groups cannot be made here; the message says where.
    """
    name = f"{PREFIX}{this_process()}.{secrets.token_hex(4)}"
    version, parents = _parents(proc)
    if "memory" not in parents or "pids" not in parents:
        raise OSError("no memory and pids control groups are mounted")
    folders = {controller: parent / name for controller, parent in parents.items()}
    group = Group(version, folders)
    try:
        for folder in set(folders.values()):
            folder.mkdir()
        for controller, file, value in _settings(version, limits):
            path = folders[controller] / file if controller in folders else None
            # Swap accounting may be missing: then there is nothing to limit.
            if path is not None and (path.exists() or "sw" not in file):
                path.write_text(value)
    except OSError:
        group.remove()
        raise
    return group


def _settings(version: int, limits: Limits) -> list[tuple[str, str, str]]:
    memory = str(limits.memory_mb * MIB)
    quota = str(int(limits.cpus * PERIOD))
    if version == 2:
        return [
            ("memory", "memory.max", memory),
            ("memory", "memory.swap.max", "0"),
            ("pids", "pids.max", str(limits.pids)),
            ("cpu", "cpu.max", f"{quota} {PERIOD}"),
        ]
    return [
        ("memory", "memory.limit_in_bytes", memory),
        ("memory", "memory.memsw.limit_in_bytes", memory),
        ("pids", "pids.max", str(limits.pids)),
        ("cpu", "cpu.cfs_period_us", str(PERIOD)),
        ("cpu", "cpu.cfs_quota_us", quota),
    ]


def _parents(proc: Path = PROC) -> tuple[int, dict[str, Path]]:
    """Version, and per controller the folder in which groups may be made."""
    unified: Path | None = None
    old: dict[str, Path] = {}
    own = _own_paths(proc)
    for kind, root, point, options in _cgroup_mounts(proc):
        if kind == "cgroup2":
            unified = point
            continue
        for controller in set(options) & set(CONTROLLERS):
            # Below the runner's own group, so that its limits hold for boxes as well.
            path = own.get(controller, "/")
            inside = path.removeprefix(root) if root != "/" else path
            old[controller] = point / inside.lstrip("/")
    if old or unified is None:
        return 1, old
    return 2, _delegated(unified)


def _delegated(root: Path) -> dict[str, Path]:
    """The version 2 folder whose children may use those of our controllers that there are. Below
    the root, not below our own group: one that holds processes cannot hand controllers on."""
    there = (root / "cgroup.controllers").read_text().split()
    wanted = [controller for controller in CONTROLLERS if controller in there]
    parent = root / "potrunner"
    parent.mkdir(exist_ok=True)
    for folder in (root, parent):
        enabled = (folder / "cgroup.subtree_control").read_text().split()
        if not set(wanted) <= set(enabled):
            text = " ".join(f"+{controller}" for controller in wanted)
            (folder / "cgroup.subtree_control").write_text(text)
    return dict.fromkeys(wanted, parent)


def _cgroup_mounts(proc: Path) -> Iterator[tuple[str, str, Path, list[str]]]:
    """(kind, root, mount point, options) of each mounted hierarchy."""
    with contextlib.suppress(OSError):
        for line in (proc / "mountinfo").read_text().splitlines():
            left, _, right = line.partition(" - ")
            kind, _source, options = right.split(" ", 2)
            if kind in ("cgroup", "cgroup2"):
                fields = left.split(" ")
                yield kind, fields[3], Path(fields[4]), options.split(",")


def _own_paths(proc: Path) -> dict[str, str]:
    """Version 1 controller → this process's group."""
    paths: dict[str, str] = {}
    for line in (proc / "cgroup").read_text().splitlines():
        _number, names, path = line.split(":", 2)
        paths.update(dict.fromkeys(names.split(","), path))
    return paths


def sweep_groups() -> int:
    """Removes groups whose owner is dead; returns how many folders."""
    removed = 0
    for parent in group_parents():
        for folder in parent.glob(f"{PREFIX}*"):
            owner = Owner.parse(folder.name.removeprefix(PREFIX).rsplit(".", 1)[0])
            if owner is not None and not owner.alive:
                remove_group(folder)
                removed += 1
    return removed


def group_parents(proc: Path = PROC) -> set[Path]:
    """The folders in which this host's groups are made; empty where none can be."""
    try:
        return set(_parents(proc)[1].values())
    except OSError:
        return set()
