"""What every isolating wall gives its box, asked from inside by a supervisor of a few lines."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import errno
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.spec import BoxSpec, InputFile, Limits
from sandbox.wall import Wall

if TYPE_CHECKING:
    from tests.walls.conftest import Ask

SPEC = BoxSpec(
    inputs=(InputFile("a.png", b"\x89PNG"), InputFile("original/ü 図.jpg", b"jpg")),
    limits=Limits(memory_mb=400, pids=64, work_mb=32, tmp_mb=16, shm_mb=16),
    run_id="walls test/1",
)

QUESTIONS: dict[str, tuple[str, object]] = {
    "no descriptors of ours": (
        "import os; answer = sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1]",
        [0, 1, 2],
    ),
    "inputs": ("import os; answer = sorted(os.listdir('/mnt/data'))", ["a.png", "original"]),
    "input bytes": ("answer = open('/mnt/data/original/ü 図.jpg').read()", "jpg"),
    "inputs are read-only": (
        "open('/mnt/data/a.png', 'w')",
        "OSError: [Errno 30] Read-only file system: '/mnt/data/a.png'",
    ),
    "no new inputs": (
        "open('/mnt/data/new', 'w')",
        "OSError: [Errno 30] Read-only file system: '/mnt/data/new'",
    ),
    "root is read-only": (
        "import errno\ntry: open('/x', 'w')\nexcept OSError as e: answer = e.errno",
        30,
    ),
    "work is writable": ("open('/work/x', 'w').close(); answer = os.listdir('/work')", ["x"]),
    "not root": ("answer = 0 in (os.getuid(), os.geteuid(), os.getgid(), *os.getgroups())", False),
    "no capabilities": (
        "answer = [l.split()[1].strip('0') for l in open('/proc/self/status') if l[:3] == 'Cap']",
        [""] * 5,
    ),
    "no new privileges, seccomp on": (
        "s = open('/proc/self/status').read(); "
        "answer = 'NoNewPrivs:\\t1' in s and 'Seccomp:\\t2' in s",
        True,
    ),
    "first process": ("answer = os.getpid()", 1),
    "own process table": ("answer = [p for p in os.listdir('/proc') if p.isdigit()]", ["1"]),
    "work directory": ("answer = os.getcwd()", "/work"),
    "only loopback": (
        "answer = [line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]",
        ["lo"],
    ),
    "no network": (
        "import socket\n"
        "try: socket.create_connection(('192.0.2.1', 80), 2)\n"
        "except OSError as e: answer = e.errno",
        1,
    ),
    "the environment is ours": (
        "answer = sorted(set(os.environ) - {'HOSTNAME', 'LD_LIBRARY_PATH', 'HOME', 'PWD'})",
        [
            *("LANG", "LC_ALL", "LOGNAME", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"),
            *("TZ", "USER"),
        ],
    ),
    "our packages are absent": (
        "import importlib.util as u; "
        "answer = [n for n in ('agent', 'sandbox', 'benchmarks', 'potrunner') if u.find_spec(n)]",
        [],
    ),
    "their packages are there": (
        "import numpy, cv2, skimage, scipy, matplotlib, PIL, ipykernel, zmq; answer = 'all'",
        "all",
    ),
    "file limits": (
        "import resource as r; answer = [r.getrlimit(r.RLIMIT_CORE)[0], "
        "r.getrlimit(r.RLIMIT_FSIZE)[0] > 32 << 20, r.getrlimit(r.RLIMIT_NOFILE)[0] <= 4096]",
        [0, True, True],
    ),
    "a full disk says so": (
        "f = open('/work/big', 'wb')\n"
        "try:\n  for _ in range(64): f.write(bytes(1 << 20))\n"
        "except OSError as e: answer = e.errno\n"
        "finally:\n  os.unlink('/work/big')\n  os.truncate(f.fileno(), 0)",
        28,
    ),
    "shared memory": (
        "from multiprocessing.shared_memory import SharedMemory as M; "
        "m = M(create=True, size=8); answer = m.size >= 8; m.close(); m.unlink()",
        True,
    ),
    "threads and processes": (
        "import multiprocessing as mp, subprocess, threading\n"
        "t = threading.Thread(target=print); t.run()\n"
        "answer = subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout",
        "hi\n",
    ),
}

FORBIDDEN = {
    "unshare": 272,
    "io_uring_setup": 425,
    "ptrace": 101,
    "bpf": 321,
    "userfaultfd": 323,
    "keyctl": 250,
    "perf_event_open": 298,
    "process_vm_readv": 310,
    "mount": 165,
    "setns": 308,
    "open_by_handle_at": 304,
}


def test_what_a_box_is(small_wall: Wall, ask: Ask) -> None:
    async def questions() -> dict[str, object]:
        wrong: dict[str, object] = {}
        async with small_wall.open(SPEC) as box:
            assert (box.data_dir, box.work_dir) == ("/mnt/data", "/work")
            for name, (code, expected) in QUESTIONS.items():
                answer = await ask(box, f"answer = None\n{code}")
                if answer != expected:
                    wrong[name] = answer
        return wrong

    assert asyncio.run(questions()) == {}


FAMILIES = (2, 10, 16, 17, 38, 40)
"""IPv4, IPv6, netlink, packet, alg, vsock."""
OF_ANOTHER = {
    "prlimit": "resource.prlimit({}, resource.RLIMIT_NOFILE, (256, 256))",
    "setpriority": "os.setpriority(os.PRIO_PROCESS, {}, os.getpriority(os.PRIO_PROCESS, 0))",
    "sched_setaffinity": "os.sched_setaffinity({}, os.sched_getaffinity(0))",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers below are x86_64's")
def test_forbidden_system_calls(small_wall: Wall, ask: Ask) -> None:
    async def refused() -> dict[str, object]:
        found: dict[str, object] = {}
        async with small_wall.open(SPEC) as box:
            await ask(box, "import ctypes, socket; c = ctypes.CDLL(None, use_errno=True)")
            for name, number in FORBIDDEN.items():
                call = f"r = c.syscall({number}, 0, 0, 0, 0, 0); answer = [r, ctypes.get_errno()]"
                found[name] = await ask(box, call)
            found["clone3"] = await ask(box, "c.syscall(435, 0, 0); answer = ctypes.get_errno()")
            # CLONE_NEWUSER | SIGCHLD: the flags of clone are looked at, the call itself is needed.
            found["clone"] = await ask(
                box, "c.syscall(56, 0x10000011, 0, 0, 0, 0); answer = ctypes.get_errno()"
            )
            # What waits in sockets of these families is charged to no memory limit.
            for family in FAMILIES:
                code = f"try: socket.socket({family})\nexcept OSError as e: answer = e.errno"
                found[f"family {family}"] = await ask(box, f"answer = None\n{code}")
            # A limit or priority of PID 1, the supervisor, is not a cell's to set; its own are.
            for name, call in OF_ANOTHER.items():
                for pid in (1, 0):
                    tried = f"try: {call.format(pid)}\nexcept OSError as e: answer = e.errno"
                    code = f"import os, resource\nanswer = None\n{tried}"
                    found[f"{name} {pid}"] = await ask(box, code)
            for name, call in {
                "every process": "os.setpriority(os.PRIO_USER, 0, 19)",
                "idle": "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
            }.items():
                code = f"answer = None\ntry: {call}\nexcept OSError as e: answer = e.errno"
                found[name] = await ask(box, code)
        return found

    expected: dict[str, object] = {name: [-1, errno.EPERM] for name in FORBIDDEN}
    expected |= {f"{name} 1": errno.EPERM for name in OF_ANOTHER}
    expected |= {f"{name} 0": None for name in OF_ANOTHER}
    expected |= {"clone3": errno.ENOSYS, "clone": errno.EPERM}
    expected |= {f"family {family}": errno.EPERM for family in FAMILIES}
    expected |= {"every process": errno.EPERM, "idle": errno.EPERM}
    assert asyncio.run(refused()) == expected


@pytest.fixture
def hostile_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache home with blanks, umlauts and great length, made under a umask that hides all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "Größe µm 図, a=b" / ("x" * 150)))
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("hostile_home")
def test_hostile_cache_home(small_wall: Wall, ask: Ask) -> None:
    async def read() -> list[object]:
        async with small_wall.open(SPEC) as box:
            names = await ask(box, "import os; answer = sorted(os.listdir('/mnt/data'))")
            return [names, await ask(box, "answer = len(open('/mnt/data/a.png', 'rb').read())")]

    assert asyncio.run(read()) == [["a.png", "original"], 4]


def test_enforced_is_complete(small_wall: Wall) -> None:
    async def enforced() -> dict[str, str]:
        async with small_wall.open(SPEC) as box:
            return box.enforced()

    assert set(asyncio.run(enforced())) == {
        *("network", "read_only_root", "memory", "swap", "cpus", "pids", "disk", "user"),
        *("capabilities", "seccomp", "host_files", "host_packages", "read_only_inputs", "cgroup"),
    }


def test_no_two_boxes_share_a_user(small_wall: Wall, ask: Ask) -> None:
    """The kernel counts descriptors in flight and pending signals by user, over all boxes."""

    async def users() -> list[object]:
        async with small_wall.open(SPEC) as one, small_wall.open(SPEC) as other:
            return [await ask(box, "import os; answer = os.getuid()") for box in (one, other)]

    first, second = asyncio.run(users())
    assert 0 not in (first, second)
    if os.geteuid() == 0 or small_wall.name == "docker":
        assert first != second
