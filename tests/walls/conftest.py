"""A supervisor of a few lines, so that walls are tested without the real one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from sandbox.bubblewrap import BubblewrapWall
from sandbox.docker import DockerWall
from sandbox.wall import Connection, Wall

ORDERLY = '''
"""Runs each line it is sent as Python and answers with one line of JSON; ends with its input."""
import json, sys, traceback
scope = {}
for line in sys.stdin:
    try:
        exec(json.loads(line), scope)
        answer = scope.get("answer")
    except BaseException as error:
        answer = "".join(traceback.format_exception_only(error)).strip()
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
'''


class Ask(Protocol):
    """Runs code in a box's first process and gives back its variable `answer`."""

    async def __call__(self, connection: Connection, code: str) -> object: ...


@pytest.fixture
def supervisor(tmp_path: Path) -> Path:
    folder = tmp_path / "supervisor"
    folder.mkdir()
    (folder / "__main__.py").write_text(ORDERLY)
    return folder


@pytest.fixture(
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ]
)
def small_wall(request: pytest.FixtureRequest, supervisor: Path) -> Wall:
    """Each isolating wall with the small supervisor."""
    return with_supervisor(request.getfixturevalue(f"{request.param}_wall"), supervisor)


@pytest.fixture
def small_docker(docker_wall: Wall, supervisor: Path) -> DockerWall:
    made = with_supervisor(docker_wall, supervisor)
    assert isinstance(made, DockerWall)
    return made


def with_supervisor(wall: Wall, supervisor: Path) -> DockerWall | BubblewrapWall:
    assert isinstance(wall, DockerWall | BubblewrapWall)
    return replace(wall, supervisor=supervisor)


@pytest.fixture
def ask() -> Ask:
    async def run(connection: Connection, code: str) -> object:
        await connection.write(json.dumps(code).encode() + b"\n")
        received = b""
        while not received.endswith(b"\n"):
            data = await connection.read()
            assert data, f"the box ended: {getattr(connection, 'diagnosis', '')}"
            received += data
        return json.loads(received)

    return run
