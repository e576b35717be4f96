"""Staging of input files: names, modes under a hostile umask, removal, the sweep of dead owners."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.errors import InputRefused, SandboxUnavailable
from sandbox.home import cache_home
from sandbox.identity import Owner, this_process
from sandbox.inputs import check_inputs, staged, staging_root, sweep_staged
from sandbox.spec import InputFile


@pytest.fixture
def umask_077() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache home with a blank, an umlaut and more characters than most paths have."""
    home = tmp_path / "Größe µm 図" / ("x" * 120)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home / "potrunner"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask_077")
def test_modes_do_not_follow_the_umask(cache: Path) -> None:
    files = (InputFile("image_1.png", b"1"), InputFile("original/image_1.jpg", b"2"))
    with staged(files) as folder:
        assert folder.is_relative_to(cache)
        assert mode(folder) == 0o755
        assert mode(folder / "original") == 0o755
        assert mode(folder / "image_1.png") == 0o444
        assert mode(folder / "original/image_1.jpg") == 0o444
        assert (folder / "original/image_1.jpg").read_bytes() == b"2"
    assert not folder.exists()
    assert list(staging_root().iterdir()) == []


@pytest.mark.usefixtures("cache")
def test_removed_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), staged((InputFile("a", b""),)) as folder:
        raise ZeroDivisionError
    assert not folder.exists()


@pytest.mark.parametrize("name", ["a.png", "Bild größe µm 図.png", "x" * 255, "a b/c d.tif", "-rf"])
def test_names_that_are_fine(name: str, cache: Path) -> None:
    with staged((InputFile(name, b"data"),)) as folder:
        assert (folder / name).read_bytes() == b"data"
    assert cache.is_dir()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/abs",
        "../up",
        "a/../../b",
        "a//b",
        ".",
        "a\\b",
        "a\nb",
        "a\0b",
        "x" * 256,
        "é" * 128,
        "\ud800",
    ],
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InputRefused, match="expected a relative file name"):
        check_inputs((InputFile(name, b""),))


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("a.png", "a.png", "two input files"),
        ("a.png", "A.PNG", "two input files"),
        ("a", "a/b", "itself an input file"),
        ("a/b", "a", "itself an input file"),
    ],
)
def test_names_that_collide(first: str, second: str, words: str) -> None:
    with pytest.raises(InputRefused, match=words):
        check_inputs((InputFile(first, b""), InputFile(second, b"")))


def test_a_cache_home_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SandboxUnavailable, match=r"expected a writable cache folder, found .*file"):
        cache_home()


@pytest.mark.usefixtures("cache")
def test_sweep_takes_dead_owners_only() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    me = this_process()
    dead = Owner(me.host, ended.pid, "long-ago")
    reused = Owner(me.host, me.pid, "another-start")
    elsewhere = Owner("otherhost", ended.pid, "long-ago")
    for owner in (me, dead, reused, elsewhere):
        (staging_root() / f"{owner}.abc").mkdir()
    (staging_root() / "not ours").mkdir()
    assert sweep_staged() == 2
    assert {path.name for path in staging_root().iterdir()} == {
        f"{me}.abc",
        f"{elsewhere}.abc",
        "not ours",
    }


def test_owner_reads_what_it_wrote() -> None:
    me = this_process()
    assert me.alive
    assert Owner.parse(str(me)) == me
    assert Owner.parse("nonsense") is None
    assert Owner.parse("a.²3.b") is None
