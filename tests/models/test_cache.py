"""The reply cache: nothing that was answered is asked again, also after a kill."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.messages import Image, Message, Reply, Request, Text
from agent.models.cache import Cached, reply_key
from agent.models.errors import ModelUnavailable
from agent.models.listed import Listed
from agent.models.options import RequestOptions

PICTURE = Image(b"one", "image/png", 8, 8, "image_1.png", "prompt", 8, 8)
ASK = Request((Message("user", (Text("what?"), PICTURE)),), sample_id="a/1", turn=1)


def ask(model: Cached, request: Request = ASK) -> Reply:
    return asyncio.run(model.reply(request))


def test_asked_once(tmp_path: Path) -> None:
    listed = Listed(["first", "second"])
    cached = Cached(listed, tmp_path / "replies")
    first = ask(cached)
    again = ask(cached)
    assert (first.text, first.cached) == ("first", False)
    assert again == replace(first, cached=True)
    assert len(listed.requests) == 1
    assert ask(Cached(Listed([]), tmp_path / "replies")) == again
    assert cached.name == "listed"


OTHERS = {
    "text": replace(ASK, messages=(Message("user", (Text("who?"), PICTURE)),)),
    "picture": replace(
        ASK, messages=(Message("user", (Text("what?"), replace(PICTURE, data=b"two"))),)
    ),
    "repeat": replace(ASK, repeat=1),
    "sample": replace(ASK, sample_id="a/2"),
    "tools": replace(ASK, tools=({"type": "function"},)),
    "tokens": replace(ASK, max_tokens=5),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_differs_is_asked(tmp_path: Path, what: str) -> None:
    cached = Cached(Listed(["first", "second"]), tmp_path)
    assert [ask(cached).text, ask(cached, OTHERS[what]).text] == ["first", "second"]


def test_the_key_holds_model_and_sampling_but_no_address() -> None:
    options = RequestOptions()
    key = reply_key(ASK, "m", options)
    assert key == reply_key(ASK, "m", replace(options, request_timeout=1.0, headers={"a": "b"}))
    assert key != reply_key(ASK, "n", options)
    assert key != reply_key(ASK, "m", replace(options, temperature=0.5))
    assert key != reply_key(ASK, "m", replace(options, extra_body={"top_k": 1}))


@pytest.mark.parametrize(
    "torn", [b"", b'{"text": "fi', b"[]", b'{"finish_reason": "stop"}', b"\xff"]
)
def test_a_torn_file_counts_as_absent_and_is_replaced(tmp_path: Path, torn: bytes) -> None:
    cached = Cached(Listed(["first", "second"]), tmp_path)
    ask(cached)
    (file,) = tmp_path.iterdir()
    file.write_bytes(torn)
    assert ask(cached).text == "second"
    assert ask(cached).text == "second"
    assert json.loads(file.read_text())["text"] == "second"


def test_a_failed_call_leaves_nothing(tmp_path: Path) -> None:
    cached = Cached(Listed([]), tmp_path)
    with pytest.raises(ModelUnavailable):
        ask(cached)
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent.messages import Message, Request, Text
from agent.models.cache import Cached
from agent.models.openai_chat import OpenAIChat
from agent.models.options import Endpoint

async def main():
    async with OpenAIChat("m", Endpoint(sys.argv[1], "EMPTY", "test")) as model:
        cached = Cached(model, Path(sys.argv[2]))
        for number in range(30):
            await cached.reply(Request((Message("user", (Text(f"question {number}"),)),)))
            print(number, flush=True)

asyncio.run(main())
"""


def test_a_killed_run_is_not_billed_twice(tmp_path: Path) -> None:
    scenario, log = tmp_path / "scenario.jsonl", tmp_path / "log.jsonl"
    scenario.write_text(json.dumps({"answer": "1", "times": 100}) + "\n")
    server = [sys.executable, "-m", "agent", "mock-endpoint", "--scenario", str(scenario)]
    serving = subprocess.Popen(
        [*server, "--log", str(log), "--delay", "0.02"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert serving.stdout is not None
        url = serving.stdout.readline().strip()
        program = [sys.executable, "-c", PROGRAM, url, str(tmp_path / "replies")]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            for _ in range(7):
                assert client.stdout.readline()
            os.kill(client.pid, signal.SIGKILL)
        subprocess.run(program, check=True, timeout=60, stdout=subprocess.DEVNULL)
    finally:
        serving.terminate()
        assert serving.wait(timeout=20) == 0
        assert serving.stdout is not None
        serving.stdout.close()
    hashes = [json.loads(line)["sha256"] for line in log.read_text().splitlines()]
    assert len(set(hashes)) == 30
    assert len(hashes) <= 31  # the one that was in flight at the kill
