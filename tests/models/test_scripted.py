"""`scripted` writes the reference program's cells, one a turn, and answers with what they print."""

from __future__ import annotations

import asyncio
import json

import pytest

from agent import dialects
from agent.messages import Answer, Message, Part, Reply, Request, Run, Text
from agent.models.errors import ModelRefused
from agent.models.scripted import Scripted
from benchmarks.cwi.tasks import TASKS, reference_cells, references

FILES = "image_1.png: /mnt/data/image_1.png, 480×480 px, sent at 480×480 (scale 1)"


def question(task: str, files: str = FILES) -> tuple[Message, ...]:
    prompt = f"{TASKS[task].opening} And so on."
    return (Message("system", (Text("…"),)), Message("user", (Text(prompt), Text(files))))


def say(history: list[Message], dialect: str) -> Reply:
    spoken = dialects.get(dialect)
    request = Request(tuple(history), tools=spoken.tools, stop=spoken.stop)
    return asyncio.run(Scripted().reply(request))


@pytest.mark.parametrize("dialect", dialects.NAMES)
@pytest.mark.parametrize("task", references())
def test_a_conversation_in_each_dialect(task: str, dialect: str) -> None:
    spoken = dialects.get(dialect)
    history = list(question(task))
    cells = reference_cells(task)
    for number, cell in enumerate(cells, start=1):
        reply = say(history, dialect)
        (action,) = spoken.read(reply)
        assert isinstance(action, Run)
        assert action.code.endswith(cell)
        assert (number == 1) == action.code.startswith("PATH = '/mnt/data/image_1.png'\n")
        compile(action.code, "cell", "exec")
        printed: tuple[Part, ...] = (Text(f"step {number}"),)
        if number == len(cells):
            printed = (Text("ANSWER: 1,2\nANSWER: 3,4"), Text("2 replies left."))
        history += [spoken.assistant(reply), *spoken.observation(((action, printed),))]
    reply = say(history, dialect)
    assert spoken.read(reply) == (Answer("3,4"),)
    assert reply.usage.estimated
    assert reply.usage.completion_tokens > 0


def test_several_pictures_and_another_folder() -> None:
    files = (
        "image_1.jpg: /tmp/box 1/data/image_1.jpg, 9×9 px, sent at 9×9 (scale 1)\n"
        "image_2.png: /tmp/box 1/data/image_2.png, 9×9 px, sent at 9×9 (scale 1)"
    )
    reply = say(list(question(references()[0], files)), "tools")
    code = json.loads(reply.tool_calls[0].arguments)["code"]
    assert code.startswith(
        "PATHS = ['/tmp/box 1/data/image_1.jpg', '/tmp/box 1/data/image_2.png']\n"
        "PATH = '/tmp/box 1/data/image_1.jpg'\n"
    )


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("Traceback …\nValueError: no seam", "The program failed: ValueError: no seam"),
        ("This is your last reply: give the answer", "printed no answer"),
    ],
)
def test_without_an_answer_it_says_why(output: str, said: str) -> None:
    history = list(question(references()[0]))
    for _ in reference_cells(references()[0]):
        reply = say(history, "fenced")
        history += [dialects.get("fenced").assistant(reply), Message("user", (Text(output),))]
    reply = say(history, "fenced")
    assert said in reply.text
    assert dialects.get("fenced").read(reply) == (Answer("unknown"),)


def test_other_questions_are_refused_in_one_line() -> None:
    with pytest.raises(ModelRefused, match="found 'What colour\\\\nis the sky") as caught:
        say([Message("user", (Text("What colour\nis the sky?"),))], "tools")
    assert "\n" not in str(caught.value)


def test_without_a_file_there_is_nothing_to_open() -> None:
    with pytest.raises(ModelRefused, match="needs the sandbox"):
        say(list(question(references()[0], "image_1.png: 9×9 px, sent at 9×9")), "fenced")
