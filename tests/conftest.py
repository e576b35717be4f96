"""What the suites share: the walls that work on this machine, found once a session.

A wall that does not work here is skipped with its reason. Where CI has prepared one, an environment
variable turns the skip into a failure: POT_REQUIRE_DOCKER=1, POT_REQUIRE_BUBBLEWRAP=1.
"""

from __future__ import annotations

import os
import signal
from functools import cache

import pytest

from sandbox.spec import WallName
from sandbox.wall import Wall
from sandbox.walls import Probe, probe

# Under `nohup`, or in the background of a script, some are ignored, and so they would be in every
# program that a test starts and then interrupts.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        _usual = signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        signal.signal(_number, _usual)

WALL_NAMES: tuple[WallName, ...] = ("docker", "bubblewrap", "process")


@cache
def wall_probe(name: WallName) -> Probe:
    """What trying the wall on this machine gave."""
    return probe(name)


def available_wall(name: WallName) -> Wall:
    """The wall; skips the calling test, or fails it where the wall is required."""
    found = wall_probe(name)
    if found.wall is not None:
        return found.wall
    if os.environ.get(f"POT_REQUIRE_{name.upper()}") == "1":
        pytest.fail(f"the {name} wall is required here: {found.problem}")
    pytest.skip(f"{name}: {found.problem}")


@pytest.fixture(
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        "process",
    ]
)
def wall(request: pytest.FixtureRequest) -> Wall:
    """Each wall in turn."""
    return available_wall(request.param)


@pytest.fixture
def docker_wall() -> Wall:
    return available_wall("docker")


@pytest.fixture
def bubblewrap_wall() -> Wall:
    return available_wall("bubblewrap")
