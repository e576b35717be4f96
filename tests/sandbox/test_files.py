"""The work directory is the model's: links, pipes and endless trees do no harm. Also the whole text
in a file, picture sizes from first bytes, and causes of death."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sandbox.supervisor.aftermath import death
from sandbox.supervisor.counters import Counters
from sandbox.supervisor.files import MAX_ENTRIES, WorkDir
from sandbox.supervisor.fulltext import MAX_BYTES, FullText
from sandbox.supervisor.sniff import sniff


def paths(work: WorkDir) -> list[str]:
    return [change.path for change in work.changes()]


def test_new_and_changed_files_in_order_of_time(tmp_path: Path) -> None:
    work = WorkDir(str(tmp_path))
    assert paths(work) == []
    (tmp_path / "sub").mkdir()
    for n, name in enumerate(["b.txt", "sub/a.txt", ".hidden", "sub/.also"]):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1000 + n, 1000 + n))
    assert paths(work) == ["b.txt", "sub/a.txt"]
    assert paths(work) == []
    (tmp_path / "b.txt").write_text("longer")
    assert paths(work) == ["b.txt"]
    (tmp_path / "b.txt").unlink()
    assert paths(work) == []


def test_only_regular_files_count_and_nothing_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.png").write_bytes(b"secret")
    root = tmp_path / "work"
    root.mkdir()
    (root / "link.png").symlink_to(outside / "secret.png")
    (root / "folder").symlink_to(outside)
    os.mkfifo(root / "pipe.png")
    work = WorkDir(str(root))
    assert paths(work) == []
    assert work.read("link.png") is None
    assert work.read("pipe.png") is None
    assert work.read("missing.png") is None


def test_endless_trees_end(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(30):
        deep /= "d"
        deep.mkdir()
    (deep / "unseen").write_text("x")
    for n in range(MAX_ENTRIES + 50):
        (tmp_path / f"{n}.txt").touch()
    assert len(paths(WorkDir(str(tmp_path)))) <= MAX_ENTRIES


def test_the_whole_text_is_written_once_it_is_long(tmp_path: Path) -> None:
    text = FullText(tmp_path, 3, threshold=10)
    text.add("12345")
    assert text.path is None
    text.add("é" * 10)
    text.add("end")
    text.close()
    assert text.path is not None
    assert Path(text.path).read_text() == "12345" + "é" * 10 + "end"


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "cell_1_output.txt").symlink_to(victim)
    text = FullText(tmp_path, 1, threshold=1)
    text.add("overwritten?")
    text.close()
    assert victim.read_text() == "untouched"
    assert (tmp_path / "cell_1_output.txt").read_text() == "overwritten?"


def test_the_file_ends_somewhere(tmp_path: Path) -> None:
    text = FullText(tmp_path, 1, threshold=1)
    for _ in range(20):
        text.add("x" * 1024 * 1024)
    text.close()
    assert text.path is not None
    assert Path(text.path).stat().st_size <= MAX_BYTES


def test_no_place_for_the_file_is_survived(tmp_path: Path) -> None:
    text = FullText(tmp_path / "missing", 1, threshold=1)
    text.add("abc")
    text.add("def")
    assert text.path is None


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
@given(width=st.integers(1, 80), height=st.integers(1, 80))
def test_sizes_from_first_bytes(form: str, width: int, height: int) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, form)
    assert sniff(buffer.getvalue()) == (f"image/{form.lower()}", width, height)


@given(st.binary(max_size=60), st.sampled_from([b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n"]))
def test_noise_is_no_picture(noise: bytes, head: bytes) -> None:
    mime, width, height = sniff(head + noise)
    assert (mime == "other") == (width == height == 0)


@pytest.mark.parametrize(
    ("status", "oom", "forks", "cause"),
    [
        (9, 1, 0, "out_of_memory"),
        (9, 0, 0, "signal:9"),
        (11, 1, 0, "signal:11"),
        (6, 0, 3, "too_many_processes"),
        (3 << 8, 0, 0, "exit:3"),
        (0, 0, 0, "exit:0"),
    ],
)
def test_causes_of_death(status: int, oom: int, forks: int, cause: str) -> None:
    assert death(status, Counters(5, 5), Counters(5 + oom, 5 + forks)) == cause
