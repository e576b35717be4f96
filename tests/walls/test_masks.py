"""Nothing of ours is in a box: no editable install, no wheel, no home, no checkout."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.cwi.photos import SPLITS, photos
from sandbox.image import DOCKERFILE
from sandbox.spec import BoxSpec
from sandbox.wall import Wall

if TYPE_CHECKING:
    from tests.walls.conftest import Ask

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages")

SEARCH = """
import os
ours = []
for top in ("/opt", "/usr", "/etc", "/mnt", "/work", "/tmp"):
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders if not f.startswith("node_modules")]
        for name in files + folders:
            path = os.path.join(folder, name)
            if name == "cwi" or "potrunner" in name or "swatch_rgb" in name:
                readable = os.path.isfile(path) and os.path.getsize(path)
                if readable or (os.path.isdir(path) and os.listdir(path)):
                    ours.append(path)
ours = [p for p in ours if not p.startswith("/opt/potrunner")]
answer = ours
"""

OUTSIDE = '''
"""Run by the Python of a virtual environment with the wheel: asks a box what it sees."""
import asyncio, json, sys
from dataclasses import replace
from pathlib import Path
import agent, benchmarks, sandbox
from sandbox.bwrap_probe import find_bubblewrap
from sandbox.spec import BoxSpec

async def main(supervisor, codes):
    wall = replace(find_bubblewrap(), supervisor=Path(supervisor))
    answers = [str(Path(sandbox.__file__).parent)]
    async with wall.open(BoxSpec()) as box:
        for code in codes:
            await box.write(json.dumps(code).encode() + b"\\n")
            answers.append(json.loads(await box.read()))
    print(json.dumps(answers))

asyncio.run(main(sys.argv[1], sys.argv[2:]))
'''
IMPORTABLE = (
    "import importlib.util as u\n"
    "answer = [n for n in ('agent', 'sandbox', 'benchmarks', 'numpy', 'cv2') if u.find_spec(n)]"
)


def test_an_editable_install_is_out_of_sight(small_wall: Wall, ask: Ask) -> None:
    places = [str(ROOT), str(Path.home()), os.path.realpath(sys.executable)]

    async def look() -> list[object]:
        async with small_wall.open(BoxSpec()) as box:
            look = f"import os; answer = [p for p in {places!r} if os.path.exists(p)]"
            seen = await ask(box, look)
            return [seen, await ask(box, SEARCH), await ask(box, IMPORTABLE)]

    seen, ours, importable = asyncio.run(look())
    # An image may have a folder of the same name as this user's home; it holds nothing of it.
    assert seen in ([], [str(Path.home())])
    assert ours == []
    assert importable == ["numpy", "cv2"]


def test_no_photograph_of_an_item_is_in_sight(small_wall: Wall, ask: Ask) -> None:
    """Where nobody brings photographs, items are made of the packages' samples: the original would
    be the answer to a shift, a jigsaw, a film."""
    names = {photo.path.name for split in SPLITS for photo in photos(None, split)}
    assert "astronaut.png" in names
    search = f"""
import os
answer = []
for folder, folders, files in os.walk("/"):
    if folder in ("/proc", "/sys"):
        folders.clear()
    paths = [os.path.join(folder, name) for name in files if name in {names!r}]
    for path in paths:
        try: answer += [path] if open(path, "rb").read(1) else []
        except PermissionError: pass
"""

    async def look() -> object:
        async with small_wall.open(BoxSpec()) as box:
            return await ask(box, search)

    assert asyncio.run(look()) == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree, built from a copy: the build writes beside its sources."""
    tmp = tmp_path_factory.mktemp("wheel")
    for name in ("agent", "sandbox", "benchmarks"):
        shutil.copytree(ROOT / name, tmp / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp / name)
    shutil.copy(ROOT / "Dockerfile.sandbox", tmp / "Dockerfile.sandbox")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp), str(tmp)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "setuptools" in done.stderr and done.returncode:
        pytest.skip(f"no package index to build a wheel: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return next(tmp.glob("*.whl"))


def test_a_wheel_carries_what_a_box_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert archive.read("sandbox/Dockerfile.sandbox") == DOCKERFILE.read_bytes()
    needed = {"seccomp.json", "syscalls.json", "image-requirements.txt", "supervisor/__main__.py"}
    assert {f"sandbox/{name}" for name in needed} <= names


@pytest.mark.bubblewrap
@pytest.mark.usefixtures("bubblewrap_wall")
def test_a_wheel_install_is_out_of_sight(wheel: Path, supervisor: Path, tmp_path: Path) -> None:
    home = tmp_path / "Umgebung ü"
    venv.create(home, with_pip=False, symlinks=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home / SITE)
    # The dependencies come from the environment that runs this test.
    numpy = next(Path(p) for p in sys.path if (Path(p) / "numpy").is_dir())
    (home / SITE / "dependencies.pth").write_text(f"{numpy}\n")
    done = subprocess.run(
        [home / "bin/python", "-c", OUTSIDE, supervisor, IMPORTABLE, SEARCH],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    where, importable, ours = json.loads(done.stdout)
    assert where == str(home / SITE / "sandbox")
    assert importable == ["numpy", "cv2"]
    assert ours == []
