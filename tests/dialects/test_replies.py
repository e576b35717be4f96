"""The folder `tests/replies`: every reply in it is read as the file beside it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.cli import run

FOLDER = Path(__file__).resolve().parent.parent / "replies"
EXPECTED = ".expected.json"
NAMES = sorted(path.name.removesuffix(EXPECTED) for path in FOLDER.glob(f"*{EXPECTED}"))


def reply(name: str) -> Path:
    (found,) = [path for path in (FOLDER / f"{name}.txt", FOLDER / f"{name}.json") if path.exists()]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_reply(name: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    expected = json.loads((FOLDER / f"{name}{EXPECTED}").read_text(encoding="utf-8"))
    assert run(["parse", str(reply(name))]) == 0
    (found,) = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    said, hint = found.pop("malformed"), expected.pop("malformed")
    assert found == expected
    assert (said is None) == (hint is None)
    assert hint is None or hint in said


def test_the_folder_is_whole() -> None:
    """Every file is a reply or its reading, and the readings are of every kind."""
    files = {path.name for path in FOLDER.iterdir()} - {"README.md"}
    assert files == {reply(name).name for name in NAMES} | {f"{name}{EXPECTED}" for name in NAMES}
    assert len(NAMES) >= 40
    readings = [json.loads((FOLDER / f"{name}{EXPECTED}").read_text("utf-8")) for name in NAMES]
    for key in ("code", "answer", "malformed", "reasoning"):
        assert sum(bool(reading[key]) for reading in readings) >= 10
