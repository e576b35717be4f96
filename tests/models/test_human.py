"""`human`: a person at a real terminal (a pty), or a pipe; what is shown, how a reply ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image as Pillow

from agent.cli import run as pot
from agent.messages import Message, Reply, Request, Text
from agent.models.errors import AccessRefused
from agent.models.human import HELP, Human
from agent.rundir import RunDir
from tests.runs.results import picture, png

POT = [sys.executable, "-m", "agent"]
DEADLINE_SECONDS = 60.0


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    build = ["build", "cwi", "--tasks", "swatch_rgb", "--count", "2", "--out", str(folder)]
    assert pot(build) == 0
    return folder


def request(*messages: Message, turn: int = 1, sample: str = "s/1") -> Request:
    return Request(messages, sample_id=sample, turn=turn)


SYSTEM = Message("system", (Text("The rules."),))
QUESTION = Message("user", (Text("How many?"), picture(png())))


@contextmanager
def pipe(typed: bytes) -> Generator[int]:
    """A standard input that somebody has typed this into, and ended."""
    reading, writing = os.pipe()
    os.write(writing, typed)
    os.close(writing)
    try:
        yield reading
    finally:
        os.close(reading)


def replies(typed: bytes, count: int = 1) -> list[str]:
    async def ask(descriptor: int) -> list[str]:
        async with Human(lambda _: None, descriptor) as human:
            return [(await human.reply(request(SYSTEM, QUESTION))).text for _ in range(count)]

    with pipe(typed) as descriptor:
        return asyncio.run(ask(descriptor))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (b"one\ntwo\n.\n", ["one\ntwo"]),
        (b"one\n.\ntwo\n . \n", ["one", "two"]),
        (b"one\r\ntwo\r\n.\r\n", ["one\ntwo"]),
        (b"no end", ["no end"]),
        (b"x\n.\nno end\n", ["x", "no end"]),
        (b".\n", [""]),
        (b"\n\nx\n\n.\n", ["\n\nx\n"]),
        (b"..\n.5\n.\n", ["..\n.5"]),
        ("Größe 图\n.\n".encode(), ["Größe 图"]),
        (b"\xff\x00\x1b[31m\n.\n", ["\ufffd\0\x1b[31m"]),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_where_a_reply_ends(typed: bytes, said: list[str]) -> None:
    assert replies(typed, len(said)) == said


def test_a_file_as_standard_input_and_a_very_long_line(tmp_path: Path) -> None:
    (tmp_path / "typed").write_bytes(b"x" * 300_000 + b"\n.\nshort\n")

    async def ask(descriptor: int) -> list[str]:
        async with Human(lambda _: None, descriptor) as human:
            return [(await human.reply(request(QUESTION))).text for _ in range(2)]

    with (tmp_path / "typed").open("rb") as file:
        assert asyncio.run(ask(file.fileno())) == ["x" * 300_000, "short"]


@pytest.mark.parametrize("typed", [b"", b"one\n.\n"])
def test_input_that_ended_ends_the_run(typed: bytes) -> None:
    with pytest.raises(AccessRefused, match="expected a reply, standard input has ended"):
        replies(typed, 1 + typed.count(b"."))


def test_what_is_shown_and_what_comes_back() -> None:
    shown: list[str] = []
    answered = Message("assistant", (Text("print(1)"),))
    observed = Message("user", (Text("Output:\n\x1b[31m1\u202e"), picture(png((1, 2, 3)))))

    async def ask(descriptor: int) -> tuple[Reply, Path]:
        async with Human(shown.append, descriptor) as human:
            first = await human.reply(request(SYSTEM, QUESTION))
            path = Path(re.findall(r"picture: (.*)", "\n".join(shown))[0])
            with Pillow.open(path) as opened:
                assert opened.size == (32, 24)
            before = len(shown)
            await human.reply(request(SYSTEM, QUESTION, answered, observed, turn=2))
            again = "\n".join(shown[before:])
            assert "How many?" not in again, "only what is new"
            assert "print(1)" not in again
            assert "Output:\n\\x1b[31m1\\u202e" in again, "nothing reaches the terminal raw"
            await human.reply(request(SYSTEM, QUESTION, sample="../s 2\n"))
            assert "\n".join(shown).count("The rules.") == 1
            return first, path

    with pipe(b"a\n.\nb\n.\nc\n.\n") as descriptor:
        reply, path = asyncio.run(ask(descriptor))
    assert not path.exists(), "the pictures go with the block"
    text = "\n".join(shown)
    assert text.count(HELP) == 3
    assert text.index("The rules.") < text.index("How many?") < text.index(HELP)
    assert "s/1 · repeat 0 · turn 1" in text
    assert reply.finish_reason == "stop"
    assert reply.usage.estimated
    assert reply.usage.completion_tokens > 0


@contextmanager
def terminal(arguments: list[str]) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """A process whose terminal is a pty, and our end of it."""
    ours, theirs = pty.openpty()
    command = [*POT, *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def until(ours: int, words: str, seen: str = "") -> str:
    """Reads the terminal until these words are there."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while words not in seen:
        assert time.monotonic() < deadline, f"{words!r} not in {seen!r}"
        if select.select([ours], [], [], 1.0)[0]:
            with contextlib.suppress(OSError):  # the other end is closed
                seen += os.read(ours, 65_536).decode("utf-8", "replace")
    return seen


def test_a_person_at_a_terminal_solves_an_item(items: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    chosen = ["--data", str(items), "--sandbox", "process", "--model", "human", "--workers", "9"]
    arguments = ["run", "cwi", *chosen, "--out", str(out), "--json"]
    with terminal(arguments) as (process, ours):
        first = until(ours, "Ctrl-D")
        assert "image_1.png" in first
        assert Path(re.findall(r"picture: (\S+)", first)[0]).is_file()
        os.write(ours, b"Let me see.\n```python\nprint(6 * 7)\n```\n.\n")
        second = until(ours, "42", until(ours, "turn 2"))
        until(ours, "Ctrl-D", second.partition("turn 2")[2])
        os.write(ours, b"It is <answer>1,2,3</answer>\n\x04")  # Ctrl-D after a line
        until(ours, "Ctrl-D", until(ours, "test/1 · repeat 0 · turn 1").rpartition("turn 1")[2])
        os.write(ours, b"<answer>1,2,3</answer>\n.\n")
        told, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert json.loads(told)["scored"] == 2
    config = json.loads((out / "config.json").read_text())["config"]
    assert (config["model"], config["dialect"], config["workers"]) == ("human", "fenced", 1)
    found = next(iter(RunDir.open(out).results()))
    assert found.trajectory
    assert found.trajectory.turns[0].executions[0].text == "42"
    assert found.trajectory.answer == "1,2,3"


@pytest.mark.parametrize("how", ["Ctrl-C", "Ctrl-D"])
def test_a_person_who_stops_can_go_on_later(items: Path, tmp_path: Path, how: str) -> None:
    out = tmp_path / "run"
    chosen = ["--data", str(items), "--arm", "look", "--model", "human", "--out", str(out)]
    with terminal(["run", "cwi", *chosen]) as (process, ours):
        until(ours, "Ctrl-D")
        os.write(ours, b"<answer>1,2,3</answer>\n.\n")
        until(ours, "Ctrl-D", until(ours, "test/1 · repeat 0 · turn 1").rpartition("turn 1")[2])
        if how == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        else:
            os.write(ours, b"\x04")
        seen = until(ours, f"go on with: pot run --resume {out}")
        process.wait(DEADLINE_SECONDS)
    assert process.returncode == (130 if how == "Ctrl-C" else 1)
    assert "Traceback" not in seen
    done = subprocess.run(
        [*POT, "run", "--resume", str(out), "--json"],
        input=b"<answer>4,5,6</answer>\n.\n",
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scored"] == 2
    assert b"test/0" not in done.stderr, "what was answered is not asked again"


def test_no_standard_input_and_a_dialect_that_nobody_types(
    items: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plain = ["run", "cwi", "--data", str(items), "--arm", "look", "--model", "human"]
    out = ["--out", str(tmp_path / "run")]
    for closed in ("<&-", "</dev/null"):
        done = subprocess.run(
            ["bash", "-c", f'"$@" {closed}', "-", *POT, *plain, *out],
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert done.returncode == 3, done.stderr
        assert "standard input" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "run").exists()
    assert pot([*plain, *out, "--dialect", "tools"]) == 2
    assert "human writes text; expected fenced or tags" in capfd.readouterr().err
    assert not (tmp_path / "run").exists()
