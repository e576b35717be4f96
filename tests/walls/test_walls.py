"""What every isolating wall gives its box, asked from inside by a supervisor of a few lines."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import errno
import json
import os
import platform
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.bubblewrap import BubblewrapWall
from sandbox.cgroups import group_parents
from sandbox.docker import DockerConnection, DockerWall
from sandbox.errors import BoxLost
from sandbox.identity import this_process
from sandbox.inputs import staging_root
from sandbox.spec import BoxSpec, InputFile, Limits
from sandbox.wall import Connection, Wall

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
        "import socket; answer = [n for _, n in socket.if_nameindex()]",
        ["lo"],
    ),
    "no network": (
        "import socket\ns = socket.socket(); s.settimeout(2)\n"
        "try: s.connect(('192.0.2.1', 80))\nexcept OSError as e: answer = e.errno",
        101,
    ),
    "the environment is ours": (
        "answer = sorted(set(os.environ) - {'HOSTNAME', 'LD_LIBRARY_PATH', 'HOME', 'PWD'})",
        ["LANG", "LC_ALL", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "TZ"],
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

SCORE = "open('/proc/self/oom_score_adj', 'w').write('1000'); "
"""As the real supervisor does for its kernels: they are to die first."""

HOG = f"""
import subprocess, sys
def hog(code):
    code = "import time; " + {SCORE!r} + code
    return subprocess.run([sys.executable, '-c', code], capture_output=True).returncode
"""
"""`hog(code)` in the box: the exit code of a child that is to die first."""

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
            for family in (17, 38, 40):  # packet, alg, vsock
                code = f"try: socket.socket({family})\nexcept OSError as e: answer = e.errno"
                found[f"family {family}"] = await ask(box, f"answer = None\n{code}")
        return found

    expected: dict[str, object] = {name: [-1, errno.EPERM] for name in FORBIDDEN}
    expected |= {"clone3": errno.ENOSYS, "clone": errno.EPERM}
    expected |= {f"family {family}": errno.EPERM for family in (17, 38, 40)}
    assert asyncio.run(refused()) == expected


@pytest.mark.parametrize(
    ("last_words", "cause"),
    [
        ("b'x' * (2 << 30)", "out_of_memory"),
        ("os.abort()", "signal:11"),
        ("os._exit(3)", "exit:3"),
        ("os._exit(0)", "exit:0"),
    ],
)
def test_why_a_box_ended(small_wall: Wall, ask: Ask, last_words: str, cause: str) -> None:
    async def end() -> tuple[str | None, str]:
        async with small_wall.open(SPEC) as box:
            # A first process cannot die of SIGABRT; libc's abort then faults on purpose.
            await ask(box, "import os, sys; sys.stderr.write('some last words\\n')")
            await box.write(json.dumps(last_words).encode() + b"\n")
            async with asyncio.timeout(60):
                while await box.read():
                    pass
            with pytest.raises(BoxLost):
                await flood(box)
            return await box.why_lost(), getattr(box, "diagnosis", "")

    found, words = asyncio.run(end())
    assert found == cause
    assert "some last words" in words


def test_killed_from_outside_is_not_the_box_own_doing(small_wall: Wall, ask: Ask) -> None:
    async def lose() -> str | None:
        async with small_wall.open(SPEC) as box:
            await ask(box, "answer = 1")
            if isinstance(box, DockerConnection):
                await asyncio.to_thread(kill_container, box.container_id)
            else:
                os.kill(first_process_of_a_box(), signal.SIGKILL)
            async with asyncio.timeout(60):
                while await box.read():
                    pass
            return await box.why_lost()

    def kill_container(identifier: str) -> None:
        assert isinstance(small_wall, DockerWall)
        small_wall.api.kill(identifier)

    assert asyncio.run(lose()) is None


def first_process_of_a_box() -> int:
    """The one grandchild of this process that is a box's first process."""
    found: list[int] = []
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        if b"bwrap" in Path(f"/proc/{child}/cmdline").read_bytes():
            found += map(int, Path(f"/proc/{child}/task/{child}/children").read_text().split())
    assert len(found) == 1
    return found[0]


async def flood(box: Connection) -> None:
    """Writes more than any buffer on the way holds."""
    for _ in range(100):
        await box.write(bytes(100_000))


def test_a_killed_box_is_gone(small_wall: Wall, ask: Ask) -> None:
    async def kill() -> str | None:
        async with small_wall.open(SPEC) as box:
            await ask(box, "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]")
            await box.kill()
            await box.kill()
            assert await box.read() == b""
            with pytest.raises(BoxLost):
                await flood(box)
            return await box.why_lost()

    assert asyncio.run(kill()) is None


def test_memory_of_children_and_scratch(small_wall: Wall, ask: Ask) -> None:
    """The limit kills the child that asks for too much, and counts files in memory as well."""

    async def hogs() -> list[object]:
        async with small_wall.open(SPEC) as box:
            await ask(box, HOG)
            fine = await ask(box, "answer = hog('b\"x\" * (100 << 20)')")
            large = await ask(
                box, "answer = hog('b\"x\" * (800 << 20); import time; time.sleep(9)')"
            )
            alive = await ask(box, "answer = 'alive'")
            return [fine, large, alive]

    assert asyncio.run(hogs()) == [0, -9, "alive"]


@pytest.mark.bubblewrap
def test_memory_without_control_groups(bubblewrap_wall: Wall, supervisor: Path, ask: Ask) -> None:
    """What an ordinary user's box has instead, told to the box in the same place."""
    assert isinstance(bubblewrap_wall, BubblewrapWall)
    wall = replace(
        bubblewrap_wall, supervisor=supervisor, control_groups=False, flavour="user_namespace"
    )
    counter = "open('/sys/fs/cgroup/memory/memory.oom_control').read().split()[-1]"
    tmpfs = "open('/work/x', 'wb').write(bytes(25 << 20)); "

    async def hogs() -> list[object]:
        spec = replace(SPEC, limits=replace(SPEC.limits, memory_mb=200))
        async with wall.open(spec) as box:
            assert box.enforced()["memory"].startswith("sampled")
            await ask(box, HOG)
            return [
                await ask(box, "answer = hog('b\"x\" * (50 << 20)')"),
                await ask(box, "answer = hog('x = b\"x\" * (400 << 20); time.sleep(20)')"),
                await ask(box, f"answer = {counter}"),
                # Files in memory count: neither half is too much by itself.
                await ask(
                    box, f"answer = hog({tmpfs + 'x = bytes([1]) * (185 << 20); time.sleep(20)'!r})"
                ),
                await ask(box, f"answer = {counter}"),
            ]

    assert asyncio.run(hogs()) == [0, -9, "1", -9, "2"]


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


def test_many_processes(small_wall: Wall, ask: Ask) -> None:
    bomb = """
import os, time
count = 0
try:
    while count < 500:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        count += 1
except OSError as error:
    answer = [error.errno, count <= 64]
"""

    async def explode() -> object:
        async with small_wall.open(SPEC) as box:
            return await ask(box, bomb)

    assert asyncio.run(explode()) == [errno.EAGAIN, True]


def test_cancelled_while_opening(small_wall: Wall) -> None:
    """However early a runner gives up, nothing of the box stays."""

    async def give_up(delay: float) -> None:
        async def opened() -> None:
            async with small_wall.open(SPEC):
                await asyncio.sleep(30)

        task = asyncio.create_task(opened())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for delay in (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
        asyncio.run(give_up(delay))
    assert [path for path in staging_root().iterdir() if str(os.getpid()) in path.name] == []
    if isinstance(small_wall, DockerWall):
        mine = {"label": f"potrunner.pid={os.getpid()}"}
        assert small_wall.api.containers(all=True, filters=mine) == []
    assert [f for p in group_parents() for f in p.glob(f"*{this_process()}*")] == []


def test_enforced_is_complete(small_wall: Wall) -> None:
    async def enforced() -> dict[str, str]:
        async with small_wall.open(SPEC) as box:
            return box.enforced()

    assert set(asyncio.run(enforced())) == {
        *("network", "read_only_root", "memory", "swap", "cpus", "pids", "disk", "user"),
        *("capabilities", "seccomp", "host_files", "host_packages", "read_only_inputs", "cgroup"),
    }
