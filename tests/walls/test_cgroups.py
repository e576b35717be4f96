"""Control groups of both versions: reading what real systems write, and the files of a box."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.cgroups import Group, group_parents, make_group
from sandbox.spec import Limits

VERSION_1 = """\
22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
30 22 0:26 / {root} ro,nosuid,nodev,noexec shared:8 - tmpfs tmpfs ro,mode=755
31 30 0:27 / {root}/unified rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw
36 30 0:32 / {root}/cpu,cpuacct rw,nosuid,nodev,noexec shared:16 - cgroup cgroup rw,cpu,cpuacct
38 30 0:34 / {root}/memory rw,nosuid,nodev,noexec,relatime shared:18 - cgroup cgroup rw,memory
40 30 0:36 / {root}/pids rw,nosuid,nodev,noexec,relatime shared:20 - cgroup cgroup rw,pids
"""
"""As systemd in hybrid mode mounts them: an empty version 2 hierarchy beside version 1."""
OWN_1 = """\
9:cpu,cpuacct:/user.slice
8:memory:/user.slice/user-0.slice/session-1.scope
6:pids:/user.slice/user-0.slice/session-1.scope
1:name=systemd:/user.slice/user-0.slice/session-1.scope
0::/user.slice/user-0.slice/session-1.scope
"""
IN_A_CONTAINER = """\
900 800 0:32 /docker/4f2a {root}/cpu ro,nosuid - cgroup cgroup rw,cpu,cpuacct
901 800 0:34 /docker/4f2a {root}/memory ro,nosuid,nodev,noexec - cgroup cgroup rw,memory
902 800 0:36 /docker/4f2a {root}/pids ro,nosuid,nodev,noexec - cgroup cgroup rw,pids
"""
OWN_IN_A_CONTAINER = "4:cpu,cpuacct:/docker/4f2a\n3:memory:/docker/4f2a/x\n2:pids:/docker/4f2a\n"
VERSION_2 = """\
24 29 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw
35 24 0:30 / {root} rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate
"""
OWN_2 = "0::/user.slice/user-1000.slice/session-2.scope\n"
LIMITS = Limits(memory_mb=300, pids=40, cpus=0.5)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    folder.mkdir()
    return folder


def write(proc: Path, mounts: str, own: str) -> Path:
    root = proc.parent / "cgroup"
    root.mkdir()
    (proc / "mountinfo").write_text(mounts.format(root=root))
    (proc / "cgroup").write_text(own)
    return root


def test_version_1_below_the_runners_own_groups(proc: Path) -> None:
    root = write(proc, VERSION_1, OWN_1)
    scope = "user.slice/user-0.slice/session-1.scope"
    assert group_parents(proc) == {
        root / "memory" / scope,
        root / "pids" / scope,
        root / "cpu,cpuacct/user.slice",
    }


def test_version_1_in_a_container(proc: Path) -> None:
    """The mount shows a part of the hierarchy: paths are taken from there."""
    root = write(proc, IN_A_CONTAINER, OWN_IN_A_CONTAINER)
    assert group_parents(proc) == {root / "memory/x", root / "pids", root / "cpu"}


def test_a_version_1_group_has_its_limits(proc: Path) -> None:
    for parent in (write(proc, VERSION_1, OWN_1), *group_parents(proc)):
        parent.mkdir(parents=True, exist_ok=True)
    group = make_group(LIMITS, proc)
    assert group.version == 1
    memory, pids, cpu = (group.folders[name] for name in ("memory", "pids", "cpu"))
    assert (memory / "memory.limit_in_bytes").read_text() == str(300 << 20)
    assert not (memory / "memory.memsw.limit_in_bytes").exists(), "swap is not accounted here"
    assert (pids / "pids.max").read_text() == "40"
    assert (cpu / "cpu.cfs_quota_us").read_text() == "50000"
    assert dict(group.mounts())[str(memory)] == "/sys/fs/cgroup/memory"
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert group.oom_kills() == 3


def unified(proc: Path, controllers: str) -> Path:
    root = write(proc, VERSION_2, OWN_2)
    (root / "cgroup.controllers").write_text(controllers)
    (root / "cgroup.subtree_control").write_text("cpu memory\n")
    (root / "potrunner").mkdir()
    (root / "potrunner/cgroup.subtree_control").write_text("")
    return root


def test_a_version_2_group_has_its_limits(proc: Path) -> None:
    root = unified(proc, "cpuset cpu io memory hugetlb pids rdma misc\n")
    group = make_group(LIMITS, proc)
    folder = group.folders["memory"]
    assert group.version == 2
    assert folder.parent == root / "potrunner"
    assert (root / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert (root / "potrunner/cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert (folder / "memory.max").read_text() == str(300 << 20)
    assert (folder / "pids.max").read_text() == "40"
    assert (folder / "cpu.max").read_text() == "50000 100000"
    assert group.mounts() == [(str(folder), "/sys/fs/cgroup")]
    events = "low 0\nhigh 0\nmax 54\noom 2\noom_kill 2\noom_group_kill 0\n"
    (folder / "memory.events").write_text(events)
    assert group.oom_kills() == 2
    group.add(4711)
    assert (folder / "cgroup.procs").read_text() == "4711"


def test_version_2_without_a_cpu_controller(proc: Path) -> None:
    unified(proc, "memory pids\n")
    group = make_group(LIMITS, proc)
    assert set(group.folders) == {"memory", "pids"}
    assert not (group.folders["pids"] / "cpu.max").exists()


@pytest.mark.parametrize("controllers", ["cpu pids\n", ""])
def test_version_2_without_memory_is_refused(proc: Path, controllers: str) -> None:
    unified(proc, controllers)
    with pytest.raises(OSError, match="memory and pids"):
        make_group(LIMITS, proc)


def test_no_control_groups_at_all(proc: Path) -> None:
    write(proc, "24 29 0:21 / /proc rw shared:12 - proc proc rw\n", "")
    assert group_parents(proc) == set()
    with pytest.raises(OSError, match="memory and pids"):
        make_group(LIMITS, proc)
    (proc / "cgroup").unlink()
    assert group_parents(proc) == set()


def test_a_group_that_cannot_be_seen_has_killed_nothing(tmp_path: Path) -> None:
    assert Group(2, {"memory": tmp_path}).oom_kills() == 0
