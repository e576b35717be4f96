"""Data of the Hub by name, over real HTTP: the good path, and each fault in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.facts import data_hash
from benchmarks import hub, load
from benchmarks.errors import DataError, DataUnavailable
from tests.benchmarks.hubserver import COMMIT, GATED, REPO, Fault, Hub, serving
from tests.benchmarks.pictures import encoded, folder, row

TASK = "circular_shift"
SHIFTS, COUNTS = "circular_shift/test-*.parquet", "peak_count/test-*.parquet"
PINNED = f"hub:{REPO}@{COMMIT}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What the data set holds: two tasks, three splits of one, two shards."""
    root = tmp_path / "data"
    one = {"image": {"bytes": encoded("JPEG"), "path": "x.jpg"}}
    folder(root, [row(0), row(1, **one)], file="test-00000-of-00002.parquet")
    folder(root, [row(2)], file="test-00001-of-00002.parquet")
    folder(root, [row(3, id="circular_shift/train/0")], file="train-00000-of-00001.parquet")
    folder(root, [row(0, id="p/0", answer="12")], task="peak_count")
    (root / "README.md").write_text("---\n---\n")
    return root


@pytest.fixture
def served(data: Path) -> Generator[Hub]:
    with serving(data) as found:
        yield found


@pytest.fixture
def client(served: Hub, tmp_path: Path) -> hub.Client:
    return hub.Client(served.url, tmp_path / "cache", seconds=20)


def fetch(client: hub.Client, name: str = f"hub:{REPO}", *patterns: str) -> hub.Fetched:
    reference = hub.parse(name)
    assert reference
    return hub.fetch(reference, patterns or (SHIFTS, COUNTS), client)


def bodies(served: Hub) -> list[str]:
    """The files that were downloaded, and no other questions."""
    return [line.rpartition(COMMIT)[2] for line in served.asked if line.startswith("GET /datasets")]


def test_the_files_are_those_of_the_folder_and_only_what_is_wanted(
    served: Hub, client: hub.Client, data: Path
) -> None:
    found = fetch(client)
    assert str(found.pinned) == PINNED
    assert load("cwi", data=found.folder) == load("cwi", data=data)
    assert sorted(bodies(served)) == [
        "/circular_shift/test-00000-of-00002.parquet",
        "/circular_shift/test-00001-of-00002.parquet",
        "/peak_count/test-00000-of-00001.parquet",
    ]
    known = ("GET /api/datasets/", "HEAD /datasets/", "GET /datasets/")
    assert all(line.startswith(known) for line in served.asked)


def test_what_is_in_the_cache_is_used_also_offline(served: Hub, client: hub.Client) -> None:
    first = fetch(client, f"hub:{REPO}", COUNTS)
    downloaded = len(bodies(served))
    assert fetch(client, f"hub:{REPO}", COUNTS) == first
    assert len(bodies(served)) == downloaded
    asked = len(served.asked)
    assert fetch(client, PINNED, COUNTS) == first, "a commit is what it is: nobody is asked"
    assert fetch(replace(client, offline=True), f"hub:{REPO}", COUNTS) == first
    assert len(served.asked) == asked
    dead = replace(client, endpoint="http://127.0.0.1:1")
    assert fetch(dead, f"hub:{REPO}", COUNTS) == first
    for fault in (Fault(500), Fault(403, GATED)):
        served.fault = fault
        assert fetch(client, f"hub:{REPO}", COUNTS) == first
    served.fault = None
    with pytest.raises(DataUnavailable, match="HF_HUB_OFFLINE is set and the cache does not have"):
        fetch(replace(client, offline=True), f"hub:{REPO}", SHIFTS)
    assert fetch(client, f"hub:{REPO}", SHIFTS).pinned == first.pinned


def test_a_branch_a_tag_and_a_commit(served: Hub, client: hub.Client) -> None:
    for revision in ("main", "v1", COMMIT):
        assert str(fetch(client, f"hub:{REPO}@{revision}").pinned) == PINNED
    with pytest.raises(DataError, match=r"@v9: expected a branch, tag or commit, found no such"):
        fetch(client, f"hub:{REPO}@v9")


def test_a_key_that_may_read_it(served: Hub, client: hub.Client) -> None:
    served.key = "hf_right"
    assert fetch(replace(client, token="hf_right")).folder.is_dir()


def test_a_hub_that_is_slow_is_waited_for(served: Hub, client: hub.Client) -> None:
    served.fault = Fault(200, seconds=1.0, late=True)
    assert fetch(client, f"hub:{REPO}", COUNTS).folder.is_dir()


INVALID = {"X-Error-Message": "Invalid credentials in Authorization header"}
TERMS = "accept the terms at {url}/datasets/ytz009/CwI-Bench, set HF_TOKEN"


@pytest.mark.parametrize(
    ("fault", "token", "words"),
    [
        (Fault(401, GATED), None, f"is gated and HF_TOKEN is not set: {TERMS}"),
        (Fault(401, GATED, files_only=True), None, f"is gated and HF_TOKEN is not set: {TERMS}"),
        (Fault(403, GATED), "hf_other", f"is gated and the account of HF_TOKEN has not: {TERMS}"),
        (Fault(403, GATED, files_only=True), "hf_other", "is gated and the account of HF_TOKEN"),
        (Fault(401, INVALID), "hf_typo", "{url} does not know the key in HF_TOKEN; copy it again"),
        (Fault(403), "hf_other", "the key in HF_TOKEN may not read it"),
        (Fault(429), None, "{url} answers 429; try again later"),
        (Fault(500), None, "{url} answers 500; try again later"),
        (Fault(503), None, "{url} answers 503; try again later"),
        (Fault(200), None, "expected a Hub at {url}, found something else; check HF_ENDPOINT"),
        (Fault(302, {"Location": "http://127.0.0.1:1/"}), None, "{url} cannot be reached ("),
        (Fault(200, seconds=5.0), None, "{url} cannot be reached (timed out)"),
        (Fault(200, files_only=True, cut=True), None, "the download broke off (peer closed"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_a_hub_refuses_is_one_line(
    fault: Fault, token: str | None, words: str, served: Hub, client: hub.Client, tmp_path: Path
) -> None:
    served.fault = fault
    seconds = 1.0 if fault.seconds else client.seconds
    with pytest.raises(DataUnavailable) as raised:
        fetch(replace(client, token=token, seconds=seconds), f"hub:{REPO}", COUNTS)
    text = str(raised.value)
    assert text.startswith(f"hub:{REPO}")
    assert words.format(url=served.url) in text
    assert "\n" not in text
    assert not token or token not in text
    served.fault = None
    assert fetch(client, f"hub:{REPO}", COUNTS).folder.is_dir(), "nothing broken stays in the cache"


def test_no_such_data_set_file_or_server_is_one_line(served: Hub, client: hub.Client) -> None:
    with pytest.raises(DataError, match=r"hub:no/such: no such data set at .*set HF_TOKEN if it"):
        fetch(client, "hub:no/such")
    with pytest.raises(DataError, match="or HF_TOKEN may not see it"):
        fetch(replace(client, token="hf_other"), "hub:no/such")
    (served.folder / "notes.txt").write_text("x")
    with pytest.raises(DataError) as raised:
        fetch(client, f"hub:{REPO}", "glyph_count/test-*.parquet")
    assert "expected files such as glyph_count/test-*.parquet, found README.md, " in str(
        raised.value
    )
    dead = replace(client, endpoint="http://127.0.0.1:1", cache=client.cache and client.cache / "2")
    with pytest.raises(DataUnavailable, match=r"http://127.0.0.1:1 cannot be reached \(.*refused"):
        fetch(dead)
    with pytest.raises(DataUnavailable, match="HF_HUB_OFFLINE is set"):
        fetch(replace(dead, offline=True))


@pytest.mark.parametrize(
    "name", ["hub:", "hub:x", "hub:a/b/c", "hub:a/b@", "hub:../b c", "hub:/a", "hub:a/b@x y"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="expected --data hub:ORG/NAME"):
        hub.parse(name)


def test_what_is_a_folder() -> None:
    assert hub.parse(None) is hub.parse("org/name") is hub.parse(Path("hubs")) is None
    assert hub.parse("hub:org/name@refs/pr/1") == hub.Reference("org/name", "refs/pr/1")


def pot(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "OPENAI_"))}
    return subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        env={**kept, **environment},
        input="<answer>-37,112</answer>\n.\n" * 3,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_run_keeps_the_commit_and_no_key_and_goes_on_without_the_hub(
    served: Hub, tmp_path: Path
) -> None:
    served.key = "hf_secret_key"
    out = tmp_path / "run"
    home = {"HF_ENDPOINT": served.url, "HF_HOME": str(tmp_path / "home")}
    asked = ["--tasks", TASK, "--model", "human", "--arm", "look", "--json"]
    begin = ["run", "cwi", "--data", f"hub:{REPO}", *asked, "--out", str(out)]
    gated = pot(home, *begin)
    assert gated.returncode == 3
    assert gated.stderr.splitlines()[-1].startswith(f"pot: hub:{REPO} is gated and HF_TOKEN is not")
    assert "Traceback" not in gated.stderr
    assert not out.exists()
    done = pot({**home, "HF_TOKEN": "hf_secret_key"}, *begin)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["correct"] == 3
    about = json.loads((out / "config.json").read_text())
    assert about["config"]["data"] == PINNED
    kept = [path for path in out.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"hf_secret_key" in path.read_bytes()]
    assert about["data_sha256"] == data_hash(load("cwi", data=served.folder, tasks=[TASK]))
    next((out / "samples").iterdir()).unlink()
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    again = pot(offline, "run", "--resume", str(out), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["correct"] == 3
