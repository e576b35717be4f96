"""The README is true: its map, its links, its commands and their flags, its Python example."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from agent.cli import COMMANDS
from sandbox.errors import SandboxUnavailable
from sandbox.spec import DEFAULT_IMAGE
from sandbox.walls import choose

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.M | re.S)
LINES = [
    line[2:].split("  #")[0].strip()
    for kind, block in BLOCKS
    if kind == "console"
    for line in block.splitlines()
    if line.startswith("$ ")
]


def pot_calls() -> list[list[str]]:
    return [part.split() for line in LINES for part in line.split("|") if "pot " in part]


def test_there_is_something_to_check() -> None:
    assert len(pot_calls()) >= 10
    assert {"make demo", "make test"} <= set(LINES)


@pytest.mark.parametrize("words", pot_calls(), ids=" ".join)
def test_each_command_and_flag_exists(words: list[str]) -> None:
    words = words[words.index("pot") + 1 :]
    assert words[0] in COMMANDS
    sub = [words[0], words[1]] if words[:2] == ["image", "build"] else [words[0]]
    shown = subprocess.run(
        [sys.executable, "-m", "agent", *sub, "--help"], capture_output=True, text=True, check=True
    ).stdout
    for flag in (word for word in words if word.startswith("--")):
        assert re.search(rf"{flag}\b", shown), f"pot {sub}: {flag}"


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README))
def test_each_link_leads_somewhere(target: str) -> None:
    assert target.startswith("https://") or (ROOT / target).exists()


def test_the_map_is_the_disk() -> None:
    named = set(re.findall(r"^\| `(\w+)/` \|", README, re.M))
    ignored = {"build", "dist"}
    found = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith(".") and path.suffix != ".egg-info"
    } - ignored - {"demo-data", "items"}  # fmt: skip
    assert named == found


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:`|^\$ )make (\w+)", README, re.M)):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_python_example_runs(tmp_path: Path) -> None:
    try:
        choose("auto", DEFAULT_IMAGE)
    except SandboxUnavailable as why:
        pytest.skip(f"no isolating wall here: {why}")
    (example,) = [block for kind, block in BLOCKS if kind == "python"]
    Image.new("RGB", (31, 17), "red").save(tmp_path / "photo.png")
    build = [sys.executable, "-m", "agent", "build", "cwi", "--count", "1", "--out", "items"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ok (31, 17)" in done.stdout
    assert "1.0 runs/" in done.stdout
    assert "outcome='correct'" in done.stdout
