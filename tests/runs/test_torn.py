"""Torn and foreign files anywhere in a run directory: set aside, told, done again; nothing lost."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.cli import run as pot
from agent.codec import CodecError
from agent.models.cache import Cached
from agent.plan import Plan
from agent.record import result_from_json, result_to_json
from agent.run import Finished, execute
from agent.rundir import Key, RunDir
from agent.stats import Row, items, row
from agent.trajectory import Result
from tests.runs.results import result
from tests.runs.standins import Answering, Log, plan

RIGHT = "<answer>10,20,30</answer>"
DAMAGED = "swatch_rgb/test/3"
NAME = "swatch_rgb~test~3.0.json"


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A finished run of six samples."""
    made = RunDir.create(tmp_path / "run")
    made.write_json("config.json", {})
    go(plan(Answering(lambda _: RIGHT)), made, {})
    return made


def go(made: Plan, run: RunDir, rows: dict[Key, Row]) -> Finished:
    owed = items(list(made.samples.values()), made.config.repeats)
    run.write_owed(owed)
    return asyncio.run(execute(made, run, owed, rows, Log()))


def gone_on(run: RunDir) -> tuple[list[str], set[str], Finished]:
    """A resume: its notes, the samples that were asked for again, how it ended."""
    notes: list[str] = []
    model = Answering(lambda _: RIGHT)
    with run.lock():
        run.sweep()
        rows = {(r.id, r.repeat): row(r) for r in run.results(notes.append)}
        finished = go(plan(model), run, rows)
    return notes, {request.sample_id for request in model.requests}, finished


def half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def content(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def changed(**fields: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return write


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")


def link(path: Path) -> None:
    outside = path.parent.parent.parent / "outside.json"
    path.rename(outside)
    path.symlink_to(outside)


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "nowhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def of_another(path: Path) -> None:
    shutil.copy(path.with_name("swatch_rgb~test~1.0.json"), path)


DAMAGE = [
    pytest.param(half, "not a whole JSON file", id="R01-half"),
    pytest.param(content(b""), "not a whole JSON file", id="R01-empty"),
    pytest.param(content(b"\0" * 4096), "not a whole JSON file", id="R01-zero-bytes"),
    pytest.param(content(os.urandom(300)), "not a whole JSON file", id="R01-binary"),
    pytest.param(content(b"\xff\xfe{}"), "not a whole JSON file", id="R01-not-UTF-8"),
    pytest.param(content(b'{"a": ' * 50_000), "not a whole JSON file", id="R01-deep"),
    pytest.param(content(b"9" * 9_000), "not a whole JSON file", id="R01-a-number-too-long"),
    pytest.param(content(b"{}{}"), "not a whole JSON file", id="R01-two-records"),
    pytest.param(content(b"null"), "expected an object", id="R01-null"),
    pytest.param(content(b'{"id": "x"}'), "expected version 1", id="R01-foreign"),
    pytest.param(changed(version=2), "expected version 1, found 2", id="R01-later-version"),
    pytest.param(changed(stop="bored"), "stop: Input should be", id="R01-unknown-stop"),
    pytest.param(changed(turns="x"), "expected a list of objects under `turns`", id="R01-types"),
    pytest.param(changed(repeat="a"), "repeat", id="R01-repeat-of-another-type"),
    pytest.param(
        changed(repeat=1), "it is the record of 'swatch_rgb/test/3', repeat 1", id="R01-x"
    ),
    pytest.param(of_another, "it is the record of 'swatch_rgb/test/1'", id="R01-of-another-sample"),
    pytest.param(folder, "expected a plain file", id="R01-folder"),
    pytest.param(link, "expected a plain file", id="R01-link-to-outside"),
    pytest.param(dangling, "expected a plain file", id="R01-dangling-link"),
    pytest.param(pipe, "expected a plain file", id="R01-pipe"),
]


@pytest.mark.parametrize(("damage", "why"), DAMAGE)
def test_a_record_that_cannot_be_read_is_kept_and_run_again(
    run: RunDir, damage: Callable[[Path], None], why: str
) -> None:
    before = run.read_json("summary.json")
    path = run.samples / NAME
    damage(path)
    found = path.lstat().st_mode, path.read_bytes() if path.is_file() else None
    notes, asked, finished = gone_on(run)
    assert asked == {DAMAGED}
    assert len(notes) == 1
    assert notes[0].startswith(f"set aside samples/{NAME}: ")
    assert why in notes[0]
    assert "\n" not in notes[0]
    aside = run.path / "aside" / f"{NAME}.0"
    assert (aside.lstat().st_mode, aside.read_bytes() if aside.is_file() else None) == found
    assert finished.exit_code == 0
    assert run.read_json("summary.json") == before
    assert len(list(run.results(pictures=True))) == 6
    assert gone_on(run)[:2] == ([], set()), "the second time there is nothing to do"


FOREIGN = [
    pytest.param(f"{NAME} (copy)", id="R01-copy"),
    pytest.param("swatch_rgb~test~3.7.json", id="R01-one-sample-in-two-files"),
    pytest.param("Swatch_rgb~test~3.0.json", id="R01-other-case"),
    pytest.param(".DS_Store", id="R01-hidden"),
    pytest.param("a\nb\x1b[31m.json", id="R01-control-characters"),
    pytest.param("图" * 80, id="R01-long-name"),
    pytest.param("x" * 255, id="R01-longest-name"),
    pytest.param(NAME + "~", id="R01-of-an-editor"),
]


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_record_goes_aside_and_costs_no_record(run: RunDir, name: str) -> None:
    shutil.copy(run.samples / NAME, run.samples / name)
    notes, asked, finished = gone_on(run)
    assert asked == set()
    assert len(notes) == 1
    assert notes[0].isprintable()
    assert finished.summary["correct"] == 6
    assert [p.read_bytes() for p in (run.path / "aside").iterdir()] == [
        (run.samples / NAME).read_bytes()
    ]
    shutil.copy(run.samples / NAME, run.samples / name)
    gone_on(run)
    assert len(list((run.path / "aside").iterdir())) == 2, "nothing set aside is overwritten"


def test_what_a_kill_leaves_of_a_write_is_swept_without_a_word(run: RunDir) -> None:
    """R01: the record was never there, so its sample is owed."""
    (run.samples / NAME).rename(run.samples / ".0123456789abcdef.part")
    notes, asked, finished = gone_on(run)
    assert (notes, asked) == ([], {DAMAGED})
    assert finished.summary["correct"] == 6
    assert not list(run.path.rglob("*.part"))


def test_a_record_that_may_not_be_read_is_kept_and_run_again() -> None:
    """As an ordinary user, whom alone the system refuses."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name, as_nobody(Path(name), user):
        made = RunDir.create(Path(name) / "run")
        made.write_json("config.json", {})
        go(plan(Answering(lambda _: RIGHT)), made, {})
        (made.samples / NAME).chmod(0)
        notes, asked, finished = gone_on(made)
        assert len(notes) == 1
        assert "Permission denied" in notes[0]
        assert asked == {DAMAGED}
        assert finished.summary["correct"] == 6
        assert (made.path / "aside" / f"{NAME}.0").exists()


class as_nobody:
    """Root becomes an ordinary user in the block, with a folder of its own."""

    def __init__(self, folder: Path, user: int) -> None:
        self.folder, self.user = folder, user

    def __enter__(self) -> None:
        if self.user == 0:
            os.chown(self.folder, 65534, 65534)
            os.seteuid(65534)

    def __exit__(self, *_: object) -> None:
        os.seteuid(self.user)


CACHE = [content(b""), half, content(b"\0" * 99), content(b"[]"), content(b'{"text": 7}'), folder]


@pytest.mark.parametrize("damage", CACHE, ids=["empty", "half", "zeros", "list", "types", "folder"])
def test_a_reply_that_cannot_be_read_is_asked_for_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    run = RunDir.create(tmp_path / "run")
    run.write_json("config.json", {})
    model = Answering(lambda _: RIGHT)
    made = plan(model)
    kept = replace(made, model=Cached(model, run.replies))
    go(kept, run, {})
    assert len(model.requests) == 12
    for record in run.samples.iterdir():
        record.unlink()
    files = sorted(run.replies.iterdir())
    for path in files[:5]:
        damage(path)
    if damage is folder:
        for path in files[:5]:
            shutil.rmtree(path)  # what cannot be replaced a person must take away
    finished = go(kept, run, {})
    assert len(model.requests) == 12 + 5
    assert finished.summary["correct"] == 6
    assert sorted(run.replies.iterdir()) == files
    assert all(json.loads(path.read_text())["text"] for path in files)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by the command line, to be copied and damaged."""
    root = tmp_path_factory.mktemp("real")
    build = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "2", "--out", str(root / "items")]
    assert pot(build) == 0
    command = ["run", "cwi", "--data", str(root / "items"), "--sandbox", "process"]
    assert pot([*command, "--out", str(root / "run")]) == 0
    return root / "run"


TORN = [b"", b"{", b"\0" * 100, b"\xff\xfe", b"[1]", b'{"config": 7}', b'{"items": [[1]]}']


@pytest.mark.parametrize("data", TORN, ids=lambda data: repr(data)[:12])
@pytest.mark.parametrize("command", [["run", "--resume"], ["score"], ["report"]])
def test_a_torn_config_is_one_line(
    command: list[str],
    data: bytes,
    real: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(real, tmp_path / "run")
    (tmp_path / "run" / "config.json").write_bytes(data)
    records = len(list((tmp_path / "run" / "samples").iterdir()))
    if command == ["report"] and data.startswith(b'{"'):
        assert pot([*command, str(tmp_path / "run")]) == 0, "the records can be shown"
        return
    assert pot([*command, str(tmp_path / "run")]) == 2
    error = capfd.readouterr().err
    assert error.startswith("pot: ")
    assert error.count("\n") == 1
    assert "config.json" in error
    assert len(list((tmp_path / "run" / "samples").iterdir())) == records


@pytest.mark.parametrize("name", ["owed.json", "summary.json", "report.html"])
def test_what_is_derived_is_made_again(
    name: str, real: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(real, tmp_path / "run")
    whole = json.loads((real / "summary.json").read_text())
    for data in (b"", b"\0" * 100, None):
        path = tmp_path / "run" / name
        path.unlink()
        if data is not None:
            path.write_bytes(data)
        capfd.readouterr()
        if name == "owed.json":
            assert pot(["report", str(tmp_path / "run")]) == 2
            assert "`pot run --resume` writes it again" in capfd.readouterr().err
        assert pot(["run", "--resume", str(tmp_path / "run"), "--json"]) == 0
        assert json.loads(capfd.readouterr().out) == whole
        assert pot(["score", str(tmp_path / "run")]) == 0
        assert path.stat().st_size > 100


def test_a_torn_record_is_one_line_for_those_who_only_read(
    real: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(real, tmp_path / "run")
    half(next((tmp_path / "run" / "samples").iterdir()))
    assert pot(["score", str(tmp_path / "run")]) == 2
    error = capfd.readouterr().err
    assert "not a whole JSON file" in error
    assert f"`pot run --resume {tmp_path}/run` sets it aside" in error
    assert error.count("\n") == 1


def _places(value: object, path: tuple[object, ...] = ()) -> Generator[tuple[object, ...]]:
    yield path
    children: list[tuple[object, object]] = []
    if isinstance(value, dict):
        children = list(value.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    elif isinstance(value, list):
        children = list(enumerate(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    for key, child in children:
        yield from _places(child, (*path, key))


RECORD = json.loads(json.dumps(result_to_json(result(), lambda data, _: "0" * 64 + ".png")))
PLACES = [path for path in _places(RECORD) if path]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from(PLACES), JSON | st.just("gone"))
def test_no_record_is_half_understood(path: tuple[Any, ...], value: object) -> None:
    """Whatever stands in any place of a record: a whole result, or one clear line."""
    record = copy.deepcopy(RECORD)
    *outer, last = path
    inside: Any = record
    for step in outer:
        inside = inside[step]
    if value == "gone":
        del inside[last]
    else:
        inside[last] = value
    found = understood(record)
    assert isinstance(found, Result) or "\n" not in found
    if isinstance(found, Result):
        assert row(found).outcome


def understood(record: dict[str, Any]) -> Result | str:
    try:
        return result_from_json(record, lambda _: b"")
    except CodecError as error:
        return str(error)
