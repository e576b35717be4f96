"""The installed wheel, outside of the checkout: all that is needed is in it, and it runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from sandbox.wall import Wall

ROOT = Path(__file__).resolve().parent.parent
OURS = ("agent", "sandbox", "benchmarks")
COPIED = (*OURS, "tests", "docs", "runs")
FILES = ("pyproject.toml", "README.md", "LICENSE", "Dockerfile.sandbox")
LEAST_SETUPTOOLS = 77
DATA = {
    "sandbox/Dockerfile.sandbox",
    "sandbox/image-requirements.txt",
    "sandbox/seccomp.json",
    "sandbox/syscalls.json",
    "agent/templates/report.css",
    "agent/templates/report.html.j2",
}


def run(command: list[str], cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Far from the checkout: no path of ours in the environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "OPENAI_", "HF_"))}
    return subprocess.run(
        command, cwd=cwd, env=kept, input=text, capture_output=True, text=True, timeout=110
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a network from a copy of the sources, tests and all."""
    if int(version("setuptools").split(".")[0]) < LEAST_SETUPTOOLS:
        pytest.skip(f"building needs setuptools >= {LEAST_SETUPTOOLS} (extra `test`)")
    if find_spec("pip") is None:
        pytest.skip("building needs pip in this environment")
    root = tmp_path_factory.mktemp("sources")
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "20*")
        shutil.copytree(ROOT / name, root / name, symlinks=True, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, root / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    done = run([*pip, "--disable-pip-version-check", "-w", str(root / "dist"), "."], root)
    assert done.returncode == 0, done.stdout + done.stderr
    return next((root / "dist").glob("potrunner-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a fresh environment that has the wheel, and borrows the libraries of ours."""
    root = tmp_path_factory.mktemp("elsewhere")
    done = run([sys.executable, "-m", "venv", "--without-pip", str(root / "env")], root)
    assert done.returncode == 0, done.stderr
    programs = root / "env" / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install"]
    options = ["--no-deps", "--no-index", "--disable-pip-version-check"]
    done = run([*pip, *options, str(wheel)], root)
    assert done.returncode == 0, done.stdout + done.stderr
    site = next((root / "env").rglob("site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


@pytest.fixture(scope="module")
def items(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("work")
    build = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "2", "--out", "items"]
    done = run([str(installed / "pot"), *build], root)
    assert done.returncode == 0, done.stderr
    return root / "items"


def test_everything_that_is_needed_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in OURS
        for path in (ROOT / package).rglob("*.py")
    }
    assert names == modules | DATA
    with zipfile.ZipFile(wheel) as archive:
        for name in DATA:
            assert archive.read(name) == (ROOT / name).read_bytes()


def test_the_names_are_the_wheels_and_so_is_what_goes_into_a_box(
    installed: Path, tmp_path: Path
) -> None:
    program = (
        "import agent, benchmarks, sandbox, sandbox.image, sandbox.supervisor, json, sys\n"
        "mine = [m.__file__ for m in (agent, benchmarks, sandbox, sandbox.supervisor)]\n"
        "print(json.dumps([mine, sys.prefix]))\n"
    )
    done = run([str(installed / "python"), "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr
    files, prefix = json.loads(done.stdout)
    assert all(Path(file).is_relative_to(prefix) for file in files)
    told = run([str(installed / "pot"), "version"], tmp_path)
    assert told.stdout.strip() == version("potrunner")
    read = run([str(installed / "pot"), "parse", "-"], tmp_path, "So <answer>12,-7</answer>")
    assert json.loads(read.stdout)["answer"] == "12,-7"


def test_cells_run_on_each_wall(installed: Path, tmp_path: Path, wall: Wall) -> None:
    code = "import cv2, numpy\nprint(6 * 7)\n# %%\nimport benchmarks\n"
    done = run([str(installed / "pot"), "exec", "--sandbox", wall.name, "-"], tmp_path, code)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["outputs"] == [{"type": "stream", "name": "stdout", "text": "42\n"}]
    assert "No module named 'benchmarks'" in second["outputs"][0]["message"], "ours stay outside"


def test_a_run_and_its_report(installed: Path, items: Path, tmp_path: Path) -> None:
    pot = str(installed / "pot")
    command = [pot, "run", "cwi", "--data", str(items), "--sandbox", "process", "--json"]
    done = run([*command, "--out", "run"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["correct"] == 2
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["commit"] is None, "an installed wheel is no checkout"
    assert about["versions"]["potrunner"] == version("potrunner")
    (tmp_path / "run" / "report.html").unlink()
    assert run([pot, "report", "run"], tmp_path).returncode == 0
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000
