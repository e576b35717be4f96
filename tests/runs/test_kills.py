"""Runs killed with SIGKILL and resumed: nothing stays, nothing is lost, nothing is paid for twice.

POT_KILLS=30,3 kills 30 times at random and 3 times at each stage of a box's life.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.runs.kills import all_stages, kill_many

SHORT = {"docker": ["random", "create", "paused"], "bubblewrap": ["random", "spawned", "stopped"]}
LONG = os.environ.get("POT_KILLS", "")


@pytest.mark.timeout(7200 if LONG else 180)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def test_killed_and_resumed(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(f"{name}_wall")
    at_random, _, each = LONG.partition(",")
    stages = all_stages(name, int(at_random), int(each or 0)) if LONG else SHORT[name]
    repeats, seconds = (12, 5.0) if LONG else (2, 40.0)
    figures = kill_many(name, stages, tmp_path, repeats=repeats, gone_seconds=seconds)
    assert figures.faults == []
    assert figures.kills == len(stages)
    assert figures.boxes >= len(stages) // 2, "most kills met a living box"
    assert figures.samples >= 16
