"""Runners in odd places: homes, umasks, working directories, paths of any kind. R17, R19."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sandbox.address import engine_address
from sandbox.identity import Owner, host_id, this_process

ROOT = Path(__file__).resolve().parents[2]
LONG = "Größe µm 図 " + "x" * 160
WALLS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
CELL = """
import os
print(sorted(os.listdir("/mnt/data")), open("/mnt/data/ä:b, c.txt").read())
print(oct(os.umask(0)), open("new.txt", "w").write("12"))
"""


def pot(
    wall: str,
    home: Path | str,
    *arguments: str,
    umask: int = 0o022,
    cwd: Path = ROOT,
    become: dict[str, Any] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agent", "exec", *arguments, "--sandbox", wall],
        capture_output=True,
        text=True,
        cwd=cwd,
        umask=umask,
        timeout=100,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
        },
        **(become or {}),
    )


@pytest.fixture
def cells(tmp_path: Path) -> list[str]:
    """A file of cells and an input, both in a folder that is hard to spell."""
    folder = tmp_path / "a b:c,d=é'\"" / LONG
    folder.mkdir(parents=True)
    (folder / "cells.py").write_text(CELL)
    (folder / "ä:b, c.txt").write_text("seen")
    return [str(folder / "cells.py"), "--image", str(folder / "ä:b, c.txt")]


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize(
    ("umask", "name"), [(0o077, LONG), (0o000, 'a b:c,d="e"\'')], ids=["077", "000"]
)
def test_any_umask_and_home(
    wall: str,
    umask: int,
    name: str,
    cells: list[str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    request.getfixturevalue(f"{wall}_wall")
    home = tmp_path / "homes" / name
    home.mkdir(parents=True)
    done = pot(wall, home, *cells, umask=umask)
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["outputs"][0]["text"] == "['ä:b, c.txt'] seen\n0o22 2\n"
    assert (home / ".cache/potrunner").stat().st_mode & 0o022 == 0
    for path in (home / ".cache/potrunner").rglob("*"):
        assert path.is_symlink() or not path.stat().st_mode & 0o022, f"others may write {path}"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become an ordinary user")
@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("umask", [0o077, 0o022])
def test_an_ordinary_user(
    wall: str, umask: int, cells: list[str], request: pytest.FixtureRequest
) -> None:
    """With docker a member of the group that may use the socket."""
    request.getfixturevalue(f"{wall}_wall")
    home = Path(tempfile.mkdtemp(prefix="pot-user-"))
    groups = [Path(engine_address().removeprefix("unix://")).stat().st_gid]
    become: dict[str, Any] = {"user": 54321, "group": 54321, "extra_groups": groups}
    try:
        for name in (cells[0], cells[2]):
            (home / Path(name).name).write_bytes(Path(name).read_bytes())
        for path in (home, *home.iterdir()):
            os.chown(path, 54321, 54321)
        try:
            subprocess.run(
                [sys.executable, "-c", "import cv2, agent"],
                env={"PYTHONPATH": str(ROOT)},
                capture_output=True,
                check=True,
                **become,
            )
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("this Python or its packages are for their owner alone")
        mine = [str(home / "cells.py"), "--image", str(home / "ä:b, c.txt")]
        done = pot(wall, home, *mine, umask=umask, cwd=home, become=become)
    finally:
        shutil.rmtree(home)
    assert done.stderr == ""
    assert json.loads(done.stdout)["outputs"][0]["text"] == "['ä:b, c.txt'] seen\n0o22 2\n"


@pytest.mark.bubblewrap
def test_a_working_directory_that_is_gone(
    bubblewrap_wall: object, cells: list[str], tmp_path: Path
) -> None:
    assert bubblewrap_wall
    (tmp_path / "gone").mkdir()
    line = [sys.executable, "-m", "agent", "exec", *cells, "--sandbox", "bubblewrap"]
    script = f"import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, {line!r})"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path / "gone",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.stderr == ""
    assert json.loads(done.stdout)["status"] == "ok"


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    ("home", "words"),
    [
        ("/dev/null", "found /dev/null/.cache/potrunner: Not a directory"),
        ("/proc", "found /proc/.cache/potrunner: No such file or directory"),
        ("relative", "found relative/.cache/potrunner: not an absolute path"),
    ],
)
def test_a_home_that_is_none_is_one_line(
    bubblewrap_wall: object, home: str, words: str, tmp_path: Path
) -> None:
    assert bubblewrap_wall
    (tmp_path / "cells.py").write_text("1")
    done = pot("bubblewrap", home, str(tmp_path / "cells.py"), cwd=tmp_path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert "set XDG_CACHE_HOME" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"cells.py"}


@pytest.mark.parametrize("wall", WALLS)
def test_r17_a_mount_that_the_box_may_not_read(
    wall: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As under SELinux: the modes are right for the runner, and yet the box sees nothing."""
    request.getfixturevalue(f"{wall}_wall")
    if os.geteuid():
        pytest.skip("a box of an ordinary user's may read what its runner may")
    cells = tmp_path / "cells.py"
    cells.write_text("1")
    assert pot(wall, tmp_path, str(cells)).returncode == 0
    (supervisor,) = (tmp_path / ".cache/potrunner/supervisor").iterdir()
    supervisor.chmod(0o700)
    done = pot(wall, tmp_path, str(cells))
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert f"chcon -Rt container_file_t {tmp_path}/.cache/potrunner" in done.stderr


def test_an_owner_that_proc_does_not_show_is_not_dead() -> None:
    """A process that is somebody else's, a pid that nobody has, and this process."""
    assert this_process().alive
    assert not Owner(host_id(), os.getpid(), "another-start").alive
    assert not Owner(host_id(), 2**22 - 7, "1-1").alive
    assert Owner("elsewhere", 2**22 - 7, "1-1").alive
