"""The run directory under hostile ids, torn files, a second writer and a full disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.codec import CodecError
from agent.errors import DiskFull, RunDirBusy, RunDirError
from agent.files import safe_name
from agent.rundir import RunDir, default_path
from tests.runs.results import failed, png, result

HOSTILE = [
    *("fig/3/a", "../../etc/x", "/abs", "a\\b", "..", ".", "", "Case", "case", "CON", "con", "nul"),
    *("2022-10-02T18:00", "Größe µm 図3", "x" * 300, "x" * 301, "X" * 300, "a\nb", "a\0b", "a b"),
    *("a%2fb", "a~b", "a/b", "é", "e\u0301", ".hidden", "com1.txt", "\ud800", "%", '"quoted"'),
]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir.create(tmp_path / "run")
    run.write_json("config.json", {"version": 1})
    return run


def test_hostile_ids_give_distinct_plain_files_and_keep_the_id_inside(run: RunDir) -> None:
    for sample_id in HOSTILE:
        run.write(result(sample_id))
    names = [path.name for path in run.samples.iterdir()]
    assert len({name.casefold() for name in names}) == len(HOSTILE)
    assert all(len(name) < 150 and name.isascii() and "/" not in name for name in names)
    assert {p.name for p in run.path.parent.iterdir()} == {"run"}
    readable = {sample_id for sample_id in HOSTILE if "\ud800" not in sample_id}
    assert {found.id for found in run.results(note=lambda _: None)} == readable


@given(st.lists(st.text(max_size=200), min_size=2, max_size=2, unique=True))
def test_different_ids_never_share_a_name(ids: list[str]) -> None:
    assert safe_name(ids[0]).casefold() != safe_name(ids[1]).casefold()


@given(st.text(max_size=300))
def test_names_are_plain(text: str) -> None:
    name = safe_name(text)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.~%")
    assert 0 < len(name) <= 120
    assert name[0] != "."


def test_ordinary_ids_stay_readable() -> None:
    assert safe_name("circular_shift/test/17") == "circular_shift~test~17"


def test_records_and_pictures_come_back(run: RunDir) -> None:
    originals = [result("a"), result("a", repeat=1), failed("b")]
    for original in originals:
        run.write(original)
    assert list(run.results(pictures=True)) == originals
    assert len(list(run.images.iterdir())) == 2, "equal pictures are stored once"
    bare = next(iter(run.results()))
    assert bare.trajectory
    assert bare.id == "a"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("b.0.json", '{"id": "b", "ver', "not a whole JSON file"),
        ("b.0.json", "", "not a whole JSON file"),
        ("b.0.json", "[1]", "expected an object"),
        ("b.0.json", '{"version": 9}', "version 1"),
        ("b.0.json", "[" * 100_000, "not a whole JSON file"),
        ("notes.txt", "hello", "not a whole JSON file"),
    ],
)
def test_torn_and_foreign_files_are_set_aside(run: RunDir, name: str, text: str, why: str) -> None:
    run.write(result("a"))
    (run.samples / name).write_text(text)
    with pytest.raises(RunDirError, match=why):
        list(run.results())
    notes: list[str] = []
    assert [found.id for found in run.results(notes.append)] == ["a"]
    assert len(notes) == 1
    assert why in notes[0]
    assert name in notes[0]
    assert (run.path / "aside" / f"{name}.0").read_text() == text
    assert [found.id for found in run.results()] == ["a"]


def test_a_record_under_anothers_name_or_without_its_picture_is_set_aside(run: RunDir) -> None:
    run.write(result("a"))
    run.write(failed("c"))
    (run.samples / "b.0.json").write_bytes((run.samples / "c.0.json").read_bytes())
    next(run.images.iterdir()).unlink()
    notes: list[str] = []
    assert [found.id for found in run.results(notes.append)] == ["c"]
    assert len(notes) == 2


def test_a_changed_picture_is_found_out(run: RunDir) -> None:
    name = run.store(png(), "image/png")
    (run.images / name).write_bytes(png((0, 0, 0)))
    with pytest.raises(CodecError, match="not what its name says"):
        run.load(name)
    for escape in ("../config.json", "/etc/passwd", "a.png", ""):
        with pytest.raises(CodecError, match="sha256"):
            run.load(escape)


def test_what_a_crash_leaves_of_a_write_is_no_record(run: RunDir) -> None:
    run.write(result("a"))
    for folder in (run.path, run.samples, run.images, run.replies):
        (folder / ".0123.part").write_text('{"id"')
    assert [found.id for found in run.results()] == ["a"]
    run.sweep()
    assert not list(run.path.rglob("*.part"))
    assert [found.id for found in run.results(pictures=True)] == ["a"]


def test_a_later_attempt_keeps_the_earlier_one(run: RunDir) -> None:
    run.write(failed("a"))
    run.write(result("a"))
    assert [found.failure for found in run.results()] == [None]
    assert len(list((run.path / "attempts").iterdir())) == 1
    run.write(result("a", value=0), keep_old=False)
    assert len(list((run.path / "attempts").iterdir())) == 1


def test_a_taken_folder_is_refused_and_force_takes_only_runs(tmp_path: Path) -> None:
    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "one.jpg").write_bytes(b"x")
    with pytest.raises(RunDirError, match="new or empty"):
        RunDir.create(foreign)
    with pytest.raises(RunDirError, match="leaves it alone"):
        RunDir.create(foreign, force=True)
    assert (foreign / "one.jpg").exists()
    run = RunDir.create(tmp_path / "run")
    run.write_json("config.json", {})
    run.write(result("a"))
    with pytest.raises(RunDirError, match="--resume"):
        RunDir.create(run.path)
    assert list(RunDir.create(run.path, force=True).results()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirError, match="cannot be written"):
        RunDir.create(tmp_path / "file")
    with pytest.raises(RunDirError, match=r"config\.json"):
        RunDir.open(tmp_path / "nowhere")


def test_two_writers_exclude_each_other_and_a_killed_one_lets_go(run: RunDir) -> None:
    program = (
        "import sys, time, pathlib; from agent.rundir import RunDir\n"
        "with RunDir.open(pathlib.Path(sys.argv[1])).lock():\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(run.path)], stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout
            assert other.stdout.readline() == "held\n"
            with pytest.raises(RunDirBusy, match=f"process {other.pid}"), run.lock():
                pass
            with pytest.raises(RunDirBusy):
                RunDir.create(run.path, force=True)
        finally:
            other.kill()
    with run.lock():
        pass


def test_default_path_is_free_and_plain(tmp_path: Path) -> None:
    first = default_path("cwi", "Org/Name:tag", tmp_path)
    first.mkdir()
    assert first.name.endswith("-cwi-org-name-tag")
    assert default_path("cwi", "Org/Name:tag", tmp_path) != first
    assert default_path("cwi", "///", tmp_path).name.endswith("-model")


@contextmanager
def small_disk(folder: Path, size: str) -> Generator[Path]:
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mount is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(run: RunDir, written: list[str]) -> None:
    for number in range(1000):
        run.write(result(f"s{number}"))
        written.append(f"s{number}")


def test_a_full_disk_is_one_clear_error_and_marks_nothing_done(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "256k") as disk:
        run = RunDir.create(disk / "run")
        run.write_json("config.json", {})
        written: list[str] = []
        with pytest.raises(DiskFull, match=r"no space left under .*small"):
            fill(run, written)
        assert written
        assert {found.id for found in run.results(pictures=True)} == set(written)
        assert not [p for p in run.samples.iterdir() if p.suffix == ".part"]
        next(run.samples.iterdir()).unlink()
        run.write(result(written[0]))
