"""Wrong input to any command: one line that says what is wrong, code 2, nothing left behind."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent.cli import run as pot
from benchmarks import load
from benchmarks.errors import BenchmarkError
from tests.runs.results import png
from tests.runs.test_cli_run import endpoint

DRY = ["run", "cwi", "--data", "items", "--sandbox", "process", "--dry-run"]
ASK = ["ask", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--arm", "look"]
EXEC = ["exec", "--sandbox", "process"]
LONG = "x" * 300
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    assert pot(["build", "cwi", "--tasks", "swatch_rgb", "--count", "3", "--out", str(folder)]) == 0
    return folder / "swatch_rgb/test-00000-of-00001.parquet"


@pytest.fixture
def place(tmp_path: Path, parquet: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with everything in it that is not what it should be."""
    for name in ("folder", "items/swatch_rgb"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "items/swatch_rgb/test-0.parquet").symlink_to(parquet)
    (tmp_path / "binary").write_bytes(bytes(range(128, 256)) * 20)
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello")
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


CASES: list[tuple[list[str], str]] = [
    (["report", "folder"], "expected a run directory (with config.json), found a folder without"),
    (["report", "binary"], "found a file"),
    (["report", "nowhere"], "found no such folder"),
    (["report", LONG], "File name too long"),
    (["score", "folder"], "found a folder without"),
    (["score", "text"], "found a file"),
    (["score", LONG], "File name too long"),
    (["score", "--benchmark", "cwi", "--responses", "folder"], "folder: Is a directory"),
    (["score", "--benchmark", "cwi", "--responses", "binary"], "expected a file of responses in"),
    (["run", "--resume", "empty"], "found a file"),
    (["run", "--resume", LONG], "File name too long"),
    ([*EXEC, "folder"], "expected a file of cells, found folder: Is a directory"),
    ([*EXEC, "binary"], "expected a file of cells in UTF-8, found invalid start byte at byte 0"),
    ([*EXEC, "nowhere"], "expected a file of cells, found nowhere: No such file"),
    ([*EXEC, "/dev/zero"], "at most 64 MiB, found more in /dev/zero"),
    ([*EXEC, "text", "--image", "folder"], "expected an image file, found folder: Is a directory"),
    ([*EXEC, "text", "--image", ""], "expected an image file"),
    ([*EXEC, "text", "--image", "text", "--image", "./text"], "different names"),
    ([*EXEC, "text", "--cell-seconds", "nan"], "--cell-seconds"),
    ([*EXEC, "text", "--cell-seconds", "1e999"], "--cell-seconds"),
    ([*EXEC, "text", "--cpus", "0"], "--cpus"),
    ([*EXEC, "text", "--memory-mb", "-1"], "--memory-mb"),
    ([*ASK, "folder", "why?"], "expected a picture, found folder: Is a directory"),
    ([*ASK, "text", "why?"], "text: expected a picture"),
    ([*ASK, "empty", "why?"], "empty: expected a picture"),
    ([*ASK, LONG, "why?"], "File name too long"),
    ([*ASK, ""], "expected a question after the pictures"),
    ([*ASK, "why \udcff?"], "question: expected text in UTF-8"),
    ([*ASK, "why?", "--max-turns", "0"], "--max-turns expected a finite number, at least 1"),
    (["ask", "why?", "--model", "m", "--base-url", "ftp://host"], "begin with http"),
    (["ask", "why?", "--model", "scripted", "--arm", "look"], "--arm look: scripted"),
    (["ask", "why?", "--model", "scripted"], "--model scripted: expected items"),
    (["parse", "folder"], "expected a reply, found folder: Is a directory"),
    (["parse", "binary"], "in UTF-8"),
    (["list", "cwi"], "unexpected extra argument"),
    (["list", "--jsn"], "No such option"),
    (["image"], "Missing command"),
    (["image", "buld"], "Did you mean 'build'"),
    (["lst"], "did you mean `pot list`?"),
    (["li\0st"], "NUL"),
    ([*DRY, "--limit", "0"], "--limit expected a finite number, at least 1, found 0"),
    ([*DRY, "--repeats", "0"], "--repeats expected a finite number, at least 1, found 0"),
    ([*DRY, "--repeats", "9" * 30], "--repeats expected at most 10000"),
    ([*DRY, "--workers", "0"], "--workers expected a finite number, at least 1, found 0"),
    ([*DRY, "--workers", "-3"], "--workers expected a finite number, at least 1, found -3"),
    ([*DRY, "--workers", "four"], "--workers"),
    ([*DRY, "--time-limit", "nan"], "--time-limit: expected finite numbers"),
    ([*DRY, "--time-limit", "1e999"], "--time-limit: expected finite numbers"),
    ([*DRY, "--temperature", "-inf"], "--temperature: expected finite numbers"),
    ([*DRY, "--top-p", "1.5"], "--top-p expected at most 1, found 1.5"),
    ([*DRY, "--seed", "9" * 30], "--seed expected at most"),
    ([*DRY, "--tasks", "swatch_rg"], "did you mean swatch_rgb"),
    ([*DRY, "--tasks", "peak_count"], "expected peak_count/test-*.parquet in items, found none"),
    ([*DRY, "--tasks", ""], "--tasks: expected names separated by commas"),
    ([*DRY, "--ids", " , "], "--ids: expected names separated by commas"),
    ([*DRY, "--ids", "swatch_rgb/test/9"], "did you mean swatch_rgb/test/"),
    ([*DRY, "--split", "tset"], "found only the splits test"),
    ([*DRY, "--split", "*"], "--split: expected letters, digits"),
    ([*DRY, "--split", "../test"], "--split: expected letters, digits"),
    ([*DRY, "--model", ""], "--model: expected a name, found ''"),
    ([*DRY, "--data", " "], "--data: expected a name, found ' '"),
    ([*DRY, "--data", LONG], "File name too long"),
    ([*DRY, "--base-url", "notaurl", "--model", "m"], "--base-url: expected an address such as"),
    ([*DRY, "--arm", "look"], "--arm look: scripted runs programs in the sandbox"),
    ([*DRY, "--max-turns", "1"], "--max-turns 1: scripted runs a program before it answers"),
    ([*DRY, "--extra-body", '{"a": NaN}'], "--extra-body: expected finite numbers"),
    ([*DRY, "--extra-body", DEEP], "--extra-body: not JSON"),
    ([*DRY, "--extra-body", "[]"], "--extra-body: expected a JSON object"),
    ([*DRY, "--header", "a b=1"], "--header 'a b': expected printable ASCII"),
    ([*DRY, "--header", "X=1\n2"], "--header 'X': expected printable ASCII"),
    ([*DRY, "--system-prompt", "folder"], "Is a directory"),
    ([*DRY, "--skills", "/dev/zero"], "at most 4 MiB"),
    ([*DRY, "--config", "folder"], "--config folder: cannot be read (Is a directory)"),
    ([*DRY, "--config", "binary"], "--config binary: not TOML"),
    ([*DRY, "--config", "/dev/zero"], "--config /dev/zero: expected at most"),
    (["run", "cwi", "--data", "items", "--sandbox", "process", "--out", LONG], "too long"),
    (["run", "cwi", "--data", "items", "--sandbox", "process", "--out", "text"], "text"),
    (["mock-endpoint", "--data", "folder"], "expected files such as"),
    (["mock-endpoint", "--data", LONG], "File name too long"),
    (["mock-endpoint", "--data", "items", "--scenario", "text"], "--data or --scenario"),
    (["mock-endpoint", "--scenario", "folder"], "Is a directory"),
    (["mock-endpoint", "--scenario", "text"], "text, line 1: expected a JSON list or JSON lines"),
    (["mock-endpoint", "--scenario", "empty"], "expected at least one step, found none"),
    (["mock-endpoint", "--delay", "nan"], "--delay"),
    (["mock-endpoint", "--delay", "inf"], "--delay: expected a finite number"),
    (["mock-endpoint", "--log", "folder"], "Is a directory"),
]  # fmt: skip


def one_line_and_nothing_left(
    arguments: list[str], words: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    before = sorted(place.rglob("*"))
    assert pot(arguments) == 2
    found = capfd.readouterr()
    assert words in found.err
    assert found.err.startswith("pot: ")
    assert found.err.count("\n") == 1
    assert len(found.err) < 900
    assert "{" not in found.out
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "words"), CASES, ids=[" ".join(case)[:60] for case, _ in CASES]
)
def test_one_line_and_nothing_left(
    arguments: list[str], words: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one_line_and_nothing_left(arguments, words, place, capfd)


CONFIGS: dict[str, tuple[Any, str]] = {
    "unknown name": ({"worker": 4}, "unknown setting 'worker'; did you mean workers?"),
    "text for a number": ({"workers": "4"}, "--workers expected a valid integer, found '4'"),
    "truth for a number": ({"workers": True}, "--workers expected a valid integer, found 'True'"),
    "a fraction": ({"limit": 2.5}, "--limit expected a valid integer"),
    "a number for a list": ({"tasks": 3}, "--tasks expected a valid array"),
    "text for a list": ({"ids": "a,b"}, "--ids expected a valid array"),
    "a list for text": ({"model": ["m"]}, "--model expected a valid string"),
    "a list for an object": ({"headers": []}, "--headers"),
    "a number in headers": ({"headers": {"X": 1}}, "--headers.X expected a valid string"),
    "negative": ({"time_limit": -1}, "--time-limit expected a finite number, at least 0.001"),
    "lone surrogate": ('{"model": "\\ud800"}', "--model: expected text in UTF-8"),
    "one deep inside": ('{"extra_body": {"a": ["\\udc00"]}}', "--extra-body: expected text in UTF"),
    "NUL": ('{"data": "a\\u0000b"}', "--data: expected text without NUL"),
    "nan": ('{"cpus": NaN}', "--cpus: expected finite numbers"),
    "1e999": ('{"cpus": 1e999}', "--cpus: expected finite numbers"),
    "not JSON": ("{", "not JSON"),
    "a list": ("[1]", "expected a table of settings, found a list or value"),
    "deep": (DEEP, "not JSON"),
    "bad address": ({"base_url": "host:80"}, "--base-url: expected an address"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_settings_files(name: str, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    content, words = CONFIGS[name]
    (place / "c.json").write_text(content if isinstance(content, str) else json.dumps(content))
    one_line_and_nothing_left([*DRY, "--config", "c.json"], words, place, capfd)


def test_dates_of_toml_are_no_json(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "c.toml").write_text("[extra_body]\nday = 2026-01-01\n")
    words = "--extra-body: expected values that JSON has"
    one_line_and_nothing_left([*DRY, "--config", "c.toml"], words, place, capfd)


def test_what_looks_odd_and_is_right(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "c.json").write_text('{"ids": [], "extra_body": {"a": "\\\\u0000 as text"}}')
    assert pot([*DRY, "--config", "c.json", "--seed", "-1", "--temperature", "0"]) == 0
    assert json.loads(capfd.readouterr().out)["owed"] == 3


STEPS: dict[str, tuple[Any, str]] = {
    "no object": ([1], "step 1: expected an object, found 1"),
    "unknown": ([{"answer": "1"}, {"anwser": "1"}], "step 2: unknown: anwser; known are answer"),
    "empty": ([{}], "step 1: expected one of code, answer, text, message, body"),
    "two kinds": ([{"answer": "1", "body": {}}], "step 1: expected one kind of answer"),
    "status": ([{"status": 99, "body": ""}], "status: expected 200 to 599, found 99"),
    "status as text": ([{"status": "x"}], "step 1: status: "),
    "delay": ([{"answer": "1", "delay": -1}], "delay: expected seconds, 0 or more"),
    "endless delay": ('[{"answer": "1", "delay": Infinity}]', "delay: expected seconds"),
    "times": ([{"answer": "1", "times": 0}], "times and turn: expected 1 or more"),
    "turn": ([{"answer": "1", "turn": 0}], "times and turn: expected 1 or more"),
    "header": ([{"answer": "1", "headers": {"a b": "c"}}], "headers: expected printable ASCII"),
    "header's value": ([{"answer": "1", "headers": {"a": "ü"}}], "headers: expected printable"),
    "no list": ("[{]", "expected a JSON list or JSON lines"),
    "second line": ('{"answer": "1"}\n{"answer": ', "line 2: expected a JSON list or JSON lines"),
    "deep": (DEEP, "expected a JSON list or JSON lines"),
    "nothing": ("[]", "expected at least one step, found none"),
}


@pytest.mark.parametrize("name", STEPS)
def test_scenarios(name: str, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    content, words = STEPS[name]
    (place / "s.json").write_text(content if isinstance(content, str) else json.dumps(content))
    one_line_and_nothing_left(["mock-endpoint", "--scenario", "s.json"], words, place, capfd)


def rows_of(parquet: Path) -> tuple[list[dict[str, Any]], pa.Schema]:
    table = pq.ParquetFile(parquet).read()
    return table.to_pylist(), table.schema


def write_data(folder: Path, content: pa.Table | bytes) -> list[str]:
    """The arguments of a dry run on a data folder with this file in it."""
    file = folder / "data/swatch_rgb/test-0.parquet"
    file.parent.mkdir(parents=True)
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        pq.write_table(content, file)
    return ["run", "cwi", "--data", "data", "--sandbox", "process", "--dry-run"]


def test_data_folders(
    place: Path, parquet: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows, schema = rows_of(parquet)
    nothing = pa.Table.from_pylist([], schema=schema)
    no_picture = pa.Table.from_pylist([{**rows[0], "image": None}], schema=schema)
    twice = pa.Table.from_pylist([rows[0], rows[0]], schema=schema)
    bytes_as_text = pa.table({**{k: ["x"] for k in ("id", "answer", "image")}, "prompt": [b"\xff"]})
    cases: list[tuple[pa.Table | bytes, str]] = [
        (b"", "expected a parquet file"),
        (b"hello", "expected a parquet file"),
        (parquet.read_bytes()[:-3000], "expected a parquet file"),
        (pa.table({"a": [1]}), "expected the columns"),
        (nothing, "no samples in split 'test' of the data"),
        (no_picture, "expected a picture in"),
        (twice, "expected unique ids, found 'swatch_rgb/test/0' twice"),
        (bytes_as_text, "expected text as prompt"),
    ]
    for number, (content, words) in enumerate(cases):
        folder = tmp_path / f"case{number}"
        arguments = write_data(folder, content)
        arguments[3] = str(folder / "data")
        one_line_and_nothing_left(arguments, words, place, capfd)


def test_torn_parquet_files_are_one_line_wherever_they_are_torn(
    parquet: Path, tmp_path: Path
) -> None:
    whole, dice, said = parquet.read_bytes(), random.Random(7), list[str]()
    file = tmp_path / "swatch_rgb/test-0.parquet"
    file.parent.mkdir()
    for _ in range(60):
        torn = bytearray(whole)
        at = len(torn) - dice.randrange(1, 6000)
        torn[at : at + dice.choice([1, 8, 300])] = dice.randbytes(8)
        file.write_bytes(torn)
        try:
            load("cwi", data=tmp_path)
        except BenchmarkError as error:
            said.append(str(error))
    assert len(said) > 10
    assert not any("\n" in text for text in said)


def test_unreadable_pictures_fail_their_samples_alone(
    place: Path, parquet: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows, schema = rows_of(parquet)
    whole = rows[1]["image"]["bytes"]
    rows[1]["image"] = {"bytes": whole[: len(whole) // 2], "path": None}
    rows[2]["image"] = {"bytes": b"no picture", "path": None}
    write_data(place, pa.Table.from_pylist(rows, schema=schema))
    capfd.readouterr()
    with endpoint("--data", "data", "--model", "gold") as url:
        line = ["run", "cwi", "--data", "data", "--model", "m", "--base-url", url, "--arm", "look"]
        assert pot([*line, "--out", "run", "--json"]) == 1
    found = capfd.readouterr()
    told = json.loads(found.out)
    assert (told["owed"], told["correct"], told["failed"]) == (3, 1, {"input": 2})
    lines = [text for text in found.err.splitlines() if text.startswith("input: ")]
    assert len(lines) == 1
    assert "image_1" in lines[0]
    assert "(and 1 other message)" in lines[0]


def test_a_picture_alone_is_not_taken_for_a_question(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (place / "p.png").write_bytes(png())
    one_line_and_nothing_left([*ASK, "p.png"], "expected a question after", place, capfd)
