"""Results made by hand: one of every shape that a record can hold."""

from __future__ import annotations

import io

from PIL import Image as Pillow

from agent.messages import Answer, Image, Malformed, Message, Reply, Run, Text, ToolCall, Usage
from agent.trajectory import Failure, Result, Trajectory, Turn
from benchmarks.sample import Score, Stage
from sandbox.outputs import Display, Dropped, Error, Execution, File, Stream


def png(colour: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (32, 24)) -> bytes:
    buffer = io.BytesIO()
    Pillow.new("RGB", size, colour).save(buffer, "PNG")
    return buffer.getvalue()


def picture(data: bytes, name: str = "image_1.png", origin: str = "prompt") -> Image:
    return Image(data, "image/png", 32, 24, name, "prompt" if origin == "prompt" else "box", 64, 48)


def execution(data: bytes) -> Execution:
    return Execution(
        outputs=(
            Stream("stdout", "größe 图\n"),
            Display("image/png", data, 32, 24),
            Display("text/plain", b"array([1])"),
            Error("ValueError", "bad", "Traceback…\nValueError: bad"),
        ),
        status="error",
        cause=None,
        kernel="kept",
        seconds=0.12345678,
        cpu_seconds=0.1,
        peak_mb=80.25,
        files=(File("out/a.png", 12),),
        dropped=Dropped(3, 1),
        note="text omitted",
    )


def trajectory(answer: str | None = "12, 7") -> Trajectory:
    drawn = png((0, 120, 0))
    calls = (ToolCall("c1", "python", '{"code": "print(1)"}'), ToolCall("c2", "x", "{"))
    prompt = (
        Message("system", (Text("You run code."),)),
        Message("user", (Text("image_1.png: 64×48 px, sent at 32×24"), picture(png()))),
    )
    first = Turn(
        Reply("Let me look.", calls, reasoning="hm", finish_reason="tool_calls", seconds=1.5),
        (Run("print(1)", "c1"), Malformed("not JSON", "c2")),
        (execution(drawn),),
        (
            Message("assistant", (Text("Let me look."),), calls),
            Message("tool", (Text("1"),), tool_call_id="c1"),
            Message("user", (picture(drawn, "output_1_1.png", "box"),)),
        ),
    )
    text = "nothing" if answer is None else f"<answer>{answer}</answer>"
    last = Turn(
        Reply(text, finish_reason="stop", usage=Usage(10, 5)),
        () if answer is None else (Answer(answer),),
        (),
        (Message("assistant", (Text(text),)),),
    )
    return Trajectory(prompt, (first, last), "answered" if answer else "max_turns", answer)


def result(
    sample_id: str = "t/test/0",
    repeat: int = 0,
    value: int | None = 1,
    answer: str | None = "12, 7",
    task: str = "t",
    difficulty: str = "easy",
) -> Result:
    outcome = "no_span" if answer is None else ("correct" if value else "wrong")
    if value is None:
        outcome = "unscored"
    score = Score(
        1 if value else (None if value is None else 0),
        outcome,
        answer,
        "count: 12, 7 expected",
        (Stage("rule-match", "score", value, "equal"),),
    )
    return Result(
        sample_id,
        repeat,
        task,
        "g",
        difficulty,
        "12, 7",
        trajectory(answer),
        score,
        None,
        2.5,
        seed=7,
        choices=("A", "B"),
        meta={"gold": [12, 7], "deep": {"x": None}},
    )


def failed(sample_id: str = "t/test/0", repeat: int = 0, task: str = "t") -> Result:
    failure = Failure("model_api", "502 Bad Gateway after 4 tries")
    return Result(sample_id, repeat, task, "g", "hard", "12, 7", None, None, failure, 0.0)
