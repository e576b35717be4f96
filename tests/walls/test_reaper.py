"""No orphans: real containers left in every way a runner can leave them, and a real SIGKILL."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docker import APIClient

from sandbox.address import DEFAULT_ENGINE, engine_address, reachable_engine
from sandbox.cgroups import group_parents
from sandbox.docker import DockerWall
from sandbox.identity import Owner, host_id, owner_labels, this_process
from sandbox.inputs import staging_root
from sandbox.reaper import guard, sweep
from sandbox.spec import DEFAULT_IMAGE

ROOT = Path(__file__).resolve().parents[2]
RUN = f"reaper-test-{os.getpid()}"

RUNNER = '''
"""A runner that opens boxes under a guard, says so, and waits to be killed."""
import asyncio, os, sys
from dataclasses import replace
from pathlib import Path
from sandbox.reaper import guard
from sandbox.spec import BoxSpec, InputFile
from sandbox.walls import choose

async def main(name, supervisor, run, count):
    wall = replace(choose(name), supervisor=Path(supervisor))
    spec = BoxSpec(inputs=(InputFile("a.png", b"1"),), run_id=run)
    async with asyncio.TaskGroup() as group:
        for _ in range(int(count)):
            group.create_task(hold(wall, spec))

async def hold(wall, spec):
    async with wall.open(spec):
        print("open", flush=True)
        await asyncio.sleep(120)

with guard(sys.argv[3]):
    asyncio.run(main(*sys.argv[1:]))
'''


class Engine:
    """The containers of this module's run."""

    def __init__(self, api: APIClient) -> None:
        self.api = api

    def containers(self) -> list[str]:
        found = self.api.containers(all=True, filters={"label": f"potrunner.run={RUN}"})
        return [str(container["Id"]) for container in found]

    def owners(self) -> set[int]:
        found = self.api.containers(all=True, filters={"label": f"potrunner.run={RUN}"})
        return {int(container["Labels"]["potrunner.pid"]) for container in found}

    def create(self, labels: dict[str, str]) -> str:
        made = self.api.create_container(
            DEFAULT_IMAGE,
            ["sleep", "600"],
            labels=labels,
            host_config=self.api.create_host_config(network_mode="none"),
        )
        return str(made["Id"])

    def leave_behind(self, owner: Owner, state: str) -> str:
        """A container as a runner may leave it: only created, running or paused."""
        identifier = self.create(owner_labels(owner, RUN))
        if state != "created":
            self.api.start(identifier)
        if state == "paused":
            self.api.pause(identifier)
        return identifier


@pytest.fixture
def engine(docker_wall: DockerWall) -> Iterator[Engine]:
    """Whatever a test of this module left is removed."""
    engine = Engine(docker_wall.api)
    yield engine
    for identifier in engine.containers():
        engine.api.remove_container(identifier, force=True)


def eventually(check: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if check():
            return True
        time.sleep(0.1)
    return check()


@pytest.mark.docker
def test_sweep_removes_dead_owners_only(engine: Engine) -> None:
    me = this_process()
    dead = Owner(me.host, me.pid, "another-start")
    gone = [engine.leave_behind(dead, state) for state in ("created", "running", "paused")]
    kept = [
        engine.leave_behind(me, "created"),
        engine.leave_behind(Owner("otherhost", 1, "x"), "created"),
    ]
    foreign = engine.create({"potrunner.run": RUN})
    assert sweep().containers >= 3
    left = set(engine.containers())
    assert left.isdisjoint(gone)
    assert left == {*kept, foreign}


@pytest.mark.docker
@pytest.mark.parametrize("state", ["created", "paused"])
def test_guard_removes_after_a_kill(state: str, engine: Engine) -> None:
    code = (
        "import sys; from sandbox.reaper import guard\n"
        f"with guard({RUN!r}):\n  print('ready', flush=True); sys.stdin.read()"
    )
    runner = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    with runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        start = Path(f"/proc/{runner.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        engine.leave_behind(Owner(host_id(), runner.pid, f"{boot}-{start}"), state)
        assert len(engine.containers()) == 1
        runner.kill()
    assert eventually(lambda: engine.containers() == [])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_runner_leaves_nothing(
    name: str, number: signal.Signals, supervisor: Path, request: pytest.FixtureRequest
) -> None:
    engine = request.getfixturevalue("engine" if name == "docker" else "bubblewrap_wall")
    command = [sys.executable, "-c", RUNNER, name, str(supervisor), RUN, "3"]
    runner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
    with runner:
        assert runner.stdout is not None
        assert [runner.stdout.readline() for _ in range(3)] == [b"open\n"] * 3
        first = children(runner.pid)
        runner.send_signal(number)
        runner.wait(60)
    assert eventually(lambda: not any(str(runner.pid) in p.name for p in staging_root().iterdir()))
    if isinstance(engine, Engine):
        assert eventually(lambda: engine.containers() == [])
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in first))
    assert eventually(lambda: not any(str(runner.pid) in group for group in groups()))


@pytest.mark.docker
def test_of_two_runners_the_killed_ones_boxes_alone_are_removed(
    engine: Engine, supervisor: Path
) -> None:
    """Neither its reaper nor the sweep of a third runner touches those of the living one."""
    command = [sys.executable, "-c", RUNNER, "docker", str(supervisor), RUN, "2"]
    runners = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
        for _ in range(2)
    ]
    try:
        for runner in runners:
            assert runner.stdout is not None
            assert [runner.stdout.readline() for _ in range(2)] == [b"open\n"] * 2
        killed, living = runners
        killed.kill()
        killed.wait()
        assert eventually(lambda: engine.owners() == {living.pid})
        sweep()
        assert engine.owners() == {living.pid}
        assert len(engine.containers()) == 2
    finally:
        for runner in runners:
            runner.kill()
            runner.wait()
            assert runner.stdout is not None
            runner.stdout.close()
    assert eventually(lambda: engine.containers() == [])


def groups() -> list[str]:
    return [folder.name for parent in group_parents() for folder in parent.glob("potrunner-*")]


def children(pid: int) -> list[int]:
    """All processes below one: bwrap, the boxes' first processes and the reaper."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *children(int(child))]
    return found


def test_guard_ends_with_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    before = set(children(os.getpid()))
    with guard("quiet") as swept:
        assert (swept.containers, swept.folders) == (0, 0)
        assert len(set(children(os.getpid())) - before) == 1
    assert set(children(os.getpid())) == before


def test_engine_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for name in ("DOCKER_CONTEXT", "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    assert engine_address() == "unix:///nonexistent.sock"
    assert reachable_engine() is None
    monkeypatch.setenv("DOCKER_HOST", "ssh://elsewhere")
    assert reachable_engine() is None
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    assert reachable_engine() == "tcp://127.0.0.1:2375"
    # A context as the Docker client writes it: the folder is the sha256 of its name.
    monkeypatch.delenv("DOCKER_HOST")
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "colima"}))
    folder = (
        tmp_path / "contexts/meta/f24fd3749c1368328e2b149bec149cb6795619f244c5b584e844961215dadd16"
    )
    folder.mkdir(parents=True)
    meta = {"Endpoints": {"docker": {"Host": "tcp://127.0.0.1:1"}}}
    (folder / "meta.json").write_text(json.dumps(meta))
    assert engine_address() == "tcp://127.0.0.1:1"
    (folder / "meta.json").write_text("{")
    assert engine_address() == DEFAULT_ENGINE
