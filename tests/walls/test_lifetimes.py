"""Boxes that end by themselves, are ended by others, or whose name somebody else has."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from docker import APIClient

from sandbox.docker import DockerWall
from sandbox.errors import BoxLost
from sandbox.reap_child import marked_processes
from sandbox.session import Box, open_box
from sandbox.spec import DEFAULT_IMAGE, BoxSpec, Limits
from sandbox.wall import Wall

RUN = f"lifetimes-{os.getpid()}"
STUBBORN = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
while True:
    try:
        while True: pass
    except BaseException: pass
"""
BUSY = """
import os
def running(pid):
    state, parent = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[:2]
    return state == "R"
print([p for p in os.listdir("/proc") if p.isdigit() and p != str(os.getpid()) and running(p)])
"""


@pytest.fixture(
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ]
)
def isolating(request: pytest.FixtureRequest) -> Wall:
    return request.getfixturevalue(f"{request.param}_wall")


def boxes(wall: Wall) -> list[str]:
    """The living boxes of this module."""
    if isinstance(wall, DockerWall):
        filters = {"label": f"potrunner.run={RUN}"}
        return [str(box["Id"]) for box in wall.api.containers(all=True, filters=filters)]
    mine = f".{os.getpid()}."
    return [str(pid) for pid, owner in marked_processes() if mine in owner]


async def eventually(check: Callable[[], bool], seconds: float = 40.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if await asyncio.to_thread(check):
            return True
        await asyncio.sleep(0.1)
    return False


def test_r10_nothing_goes_on_after_a_timeout(isolating: Wall) -> None:
    async def work() -> None:
        limits = Limits(grace_seconds=0.5)
        async with open_box(isolating, run_id=RUN, limits=limits) as box:
            await box.preloaded()
            late = await box.run(STUBBORN, 2)
            assert (late.status, late.cause) == ("timeout", "deadline")
            await box.preloaded()
            found: list[str] = []
            for _ in range(10):  # the new zygote may still be importing
                found.append((await box.run(BUSY)).text.strip())
                if found[-1] == "[]":
                    return
                await asyncio.sleep(0.5)
            raise AssertionError(found)

    asyncio.run(work())


def test_r32_a_box_ends_by_itself_at_its_lifetime(isolating: Wall) -> None:
    """While its runner does nothing at all, as one that hangs."""

    async def work() -> None:
        limits = Limits(lifetime_seconds=4)
        async with open_box(isolating, run_id=RUN, limits=limits) as box:
            assert (await box.run("1 + 1")).text == "2"
            assert boxes(isolating)
            assert await eventually(lambda: not boxes(isolating))

    asyncio.run(work())


def in_a_box(wall: Wall, work: Callable[[Box], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_box(wall, run_id=RUN) as box:
            await work(box)

    asyncio.run(run())


@pytest.mark.docker
@pytest.mark.parametrize("how", ["kill", "remove"])
def test_r29_a_box_that_others_end_is_the_hosts_fault(docker_wall: Wall, how: str) -> None:
    """The cell that was running has no result at all, and the box works again after it."""
    assert isinstance(docker_wall, DockerWall)
    api = docker_wall.api

    async def work(box: Box) -> None:
        cell = asyncio.create_task(box.run("import time; print('on'); time.sleep(60)"))
        await asyncio.sleep(1.5)
        (identifier,) = boxes(docker_wall)
        if how == "kill":
            await asyncio.to_thread(api.kill, identifier)
        else:
            await asyncio.to_thread(api.remove_container, identifier, force=True)
        with pytest.raises(BoxLost):
            await cell
        assert (await box.run("print('again')")).text == "again"

    in_a_box(docker_wall, work)
    assert boxes(docker_wall) == []


class Taken:
    """The engine, but the first name that is asked for has just been taken by somebody else."""

    def __init__(self, api: APIClient) -> None:
        self._api = api
        self.foreign: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def create_container_from_config(self, config: dict[str, Any], name: str) -> dict[str, Any]:
        if self.foreign is None:
            made = self._api.create_container(DEFAULT_IMAGE, ["sleep", "9"], name=name)
            self.foreign = str(made["Id"])
        return self._api.create_container_from_config(config, name)


@pytest.mark.docker
def test_r15_a_name_that_is_taken(docker_wall: Wall) -> None:
    """Another name is used; the container that has it is left alone."""
    assert isinstance(docker_wall, DockerWall)
    taken = Taken(docker_wall.api)
    wall = replace(docker_wall, api=cast("APIClient", taken))
    try:

        async def work(box: Box) -> None:
            assert (await box.run("40 + 2")).text == "42"

        in_a_box(wall, work)
        assert taken.foreign
        state = docker_wall.api.inspect_container(taken.foreign)["State"]["Status"]
        assert state == "created"
    finally:
        if taken.foreign:
            docker_wall.api.remove_container(taken.foreign, force=True)


def test_a_cell_that_is_given_up_leaves_no_box(isolating: Wall) -> None:
    """Its box is gone when the block ends, not some time after."""

    async def work() -> None:
        async with open_box(isolating, run_id=RUN) as box:
            cell = asyncio.create_task(box.run("import time; time.sleep(60)"))
            await asyncio.sleep(0.5)
            cell.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cell
        if not isinstance(isolating, DockerWall):
            assert boxes(isolating) == []
        assert await eventually(lambda: not boxes(isolating), 5)

    asyncio.run(work())


def test_given_up_at_any_moment_of_the_opening(isolating: Wall) -> None:
    async def give_up(delay: float) -> None:
        async def opened() -> None:
            async with isolating.open(BoxSpec(run_id=RUN)):
                await asyncio.sleep(30)

        task = asyncio.create_task(opened())
        await asyncio.sleep(delay)
        for _ in range(3):  # an impatient caller
            task.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await task

    for delay in (0.0, 0.02, 0.06, 0.12, 0.3):
        asyncio.run(give_up(delay))
    assert boxes(isolating) == []
