"""The threat model names files that exist, and a test for each thing that it claims."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
ROWS = [
    line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| against")
]


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|sandbox)/[\w/.]+)`", PAGE))))
def test_named_files_exist(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_each_claim_names_a_test(row: str) -> None:
    assert re.search(r"`tests/\S+\.py`", row.split("|")[-2])


def test_it_is_short_says_what_is_not_protected_and_is_linked() -> None:
    assert len(PAGE.splitlines()) <= 150
    assert len(ROWS) > 25
    sections = PAGE.split("\n## ")[1:]
    assert all("**Not protected.**" in section for section in sections)
    for page in ("README.md", "docs/design.md"):
        assert "security.md" in (ROOT / page).read_text(encoding="utf-8")
