"""The loop in a real box: every way a sample can go and end."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from PIL import Image as Pillow

from agent import dialects, prompts
from agent.config import RunConfig
from agent.errors import InputProblem
from agent.loop import Box, run_sample
from agent.messages import Image, Message, Reply, Request, ToolCall, Usage
from agent.models.errors import ContextFull, ModelUnavailable
from agent.models.listed import Listed, Said
from agent.trajectory import Trajectory
from benchmarks.sample import Picture, Sample
from sandbox import InputFile, open_box
from sandbox.spec import Limits

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def picture(width: int = 64, height: int = 48) -> bytes:
    buffer = io.BytesIO()
    Pillow.new("RGB", (width, height), "blue").save(buffer, "PNG")
    return buffer.getvalue()


SAMPLE = Sample(
    "t/test/0", "cwi", "circular_shift", "Q?", (Picture("image_1.png", picture()),), "1,2"
)


@asynccontextmanager
async def box(files: Sequence[InputFile]) -> AsyncGenerator[Box]:
    async with open_box("process", inputs=files, limits=Limits(grace_seconds=0.5)) as opened:
        yield opened


def no_box(files: Sequence[InputFile]) -> AbstractAsyncContextManager[Box]:
    raise AssertionError("the look arm has no box")


def code(text: str) -> str:
    return f"```python\n{text}\n```"


async def go(
    *replies: Said, sample: Sample = SAMPLE, dialect: str = "fenced", **values: object
) -> tuple[Trajectory, Listed]:
    config = RunConfig(benchmark="cwi", **values)  # pyright: ignore[reportArgumentType]
    model = Listed(replies)
    opener = no_box if config.arm == "look" else box
    return await run_sample(sample, model, opener, dialects.get(dialect), config), model


def texts(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages)


async def test_cells_share_state_and_pictures_come_back_as_pixels() -> None:
    trajectory, model = await go(
        code("x = 20\nprint('set')"),
        code("from PIL import Image\ndisplay(Image.new('RGB', (30, 40), 'red'))\nprint(x + 1)"),
        "<answer>21</answer>",
    )
    assert (trajectory.stop, trajectory.answer) == ("answered", "21")
    assert [len(turn.executions) for turn in trajectory.turns] == [1, 1, 0]
    (image,) = [p for m in model.requests[2].messages for p in m.parts if _from_box(p)]
    assert isinstance(image, Image)
    assert (image.width, image.height, image.name) == (30, 40, "output_2_1.png")
    sent = texts(model.requests[2].messages)
    assert "output_2_1.png: 30×40 px" in sent
    assert "21" in sent


def _from_box(part: object) -> bool:
    return isinstance(part, Image) and part.origin == "box"


async def test_the_picture_in_the_box_is_the_one_that_the_prompt_names() -> None:
    sample = Sample("s", "cwi", "t", "Q?", (Picture("image_1.png", picture(3000, 2000)),), "1")

    def look(request: Request) -> str:
        path = texts(request.messages).split("image_1.png: ")[1].split(",")[0]
        return code(f"from PIL import Image\nprint(Image.open({path!r}).size)")

    trajectory, model = await go(look, "<answer>1</answer>", sample=sample)
    assert "(3000, 2000)" in trajectory.turns[0].executions[0].text
    text = trajectory.prompt[1].text
    assert "/image_1.png, 3000×2000 px, sent at 1881×1254 (scale 0.627" in text
    (image,) = [p for p in model.requests[0].messages[1].parts if isinstance(p, Image)]
    assert (image.width, image.height) == (1881, 1254)


async def test_an_answer_beside_code_is_provisional() -> None:
    trajectory, _ = await go(code("print(1)") + "\n<answer>5</answer>", "hmm", "hmm", max_turns=3)
    assert (trajectory.stop, trajectory.answer) == ("max_turns", "5")
    trajectory, _ = await go(code("print(1)") + "\n<answer>5</answer>", "<answer>6</answer>")
    assert (trajectory.stop, trajectory.answer) == ("answered", "6")


async def test_code_in_the_last_reply_is_not_run_and_a_span_in_it_is_final() -> None:
    last = code("print('never')") + "<answer>9</answer>"
    trajectory, model = await go(code("print(1)"), last, max_turns=2)
    assert (trajectory.stop, trajectory.answer) == ("answered", "9")
    assert trajectory.turns[-1].executions == ()
    assert prompts.LAST_REPLY in model.requests[1].messages[-1].text
    trajectory, model = await go(last, max_turns=1)
    assert (trajectory.stop, trajectory.answer) == ("answered", "9")
    assert prompts.LAST_REPLY in texts(model.requests[0].messages)


async def test_with_five_replies_four_outputs_are_seen() -> None:
    trajectory, model = await go(*[code(f"print({n})") for n in range(5)])
    assert (trajectory.stop, trajectory.answer) == ("max_turns", None)
    assert len(model.requests) == 5
    assert sum(len(turn.executions) for turn in trajectory.turns) == 4
    assert "4 replies left." in model.requests[1].messages[-1].text


@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        (Reply("", refusal="I will not", finish_reason="stop"), "refused"),
        (Reply("", finish_reason="content_filter"), "refused"),
        (Reply("<think>so long", finish_reason="length"), "cut_in_reasoning"),
        (Reply("", reasoning="so long", finish_reason="length"), "cut_in_reasoning"),
        (Reply("<think>so long</think>", finish_reason="stop"), "cut_in_reasoning"),
        (Reply(code("1"), usage=Usage(9, 40_960), finish_reason="stop"), "token_limit"),
        (Reply(code("1"), seconds=601, finish_reason="stop"), "time_limit"),
    ],
)
async def test_stops_on_one_reply(reply: Reply, stop: str) -> None:
    trajectory, _ = await go(reply)
    assert (trajectory.stop, trajectory.answer) == (stop, None)


async def test_three_unreadable_replies_in_a_row() -> None:
    trajectory, model = await go("hmm", "hmm", "hmm")
    assert (trajectory.stop, len(model.requests)) == ("malformed", 3)
    trajectory, _ = await go("hmm", "hmm", code("1"), "hmm", "<answer>3</answer>")
    assert (trajectory.stop, trajectory.answer) == ("answered", "3")


async def test_a_full_context_ends_the_sample_and_keeps_the_provisional_answer() -> None:
    class Full(Listed):
        async def reply(self, request: object) -> Reply:
            if self.requests:
                raise ContextFull("too long")
            return await super().reply(request)  # pyright: ignore[reportArgumentType]

    config = RunConfig(benchmark="cwi")
    model = Full([code("print(1)") + "<answer>4</answer>"])
    trajectory = await run_sample(SAMPLE, model, box, dialects.get("fenced"), config)
    assert (trajectory.stop, trajectory.answer) == ("context_full", "4")


async def test_cells_count_against_the_time_limit_and_are_cut_to_it() -> None:
    trajectory, _ = await go(code("import time\ntime.sleep(60)"), time_limit=1.0)
    (execution,) = trajectory.turns[0].executions
    assert execution.status == "timeout"
    assert trajectory.stop == "time_limit"


async def test_three_deaths_exhaust_the_box() -> None:
    trajectory, model = await go(*[code("import os; os._exit(3)")] * 4)
    assert (trajectory.stop, len(model.requests)) == ("box_exhausted", 3)
    assert "all variables are lost" in texts(model.requests[1].messages)


async def test_tool_calls_are_each_answered() -> None:
    calls = (
        ToolCall("a", "python", '{"code": "y = 2; print(y)"}'),
        ToolCall("b", "search", '{"query": "z"}'),
        ToolCall("c", "run", '{"code": "print(y * 5)"}'),
    )
    trajectory, model = await go(
        Reply("", tool_calls=calls, finish_reason="tool_calls"),
        "<answer>10</answer>",
        dialect="tools",
    )
    assert trajectory.answer == "10"
    answered = {m.tool_call_id: m.text for m in model.requests[1].messages if m.role == "tool"}
    assert list(answered) == ["a", "b", "c"]
    assert "2" in answered["a"]
    assert "python" in answered["b"]
    assert "10" in answered["c"]
    assert model.requests[0].tools


async def test_look_has_no_box_no_tools_and_blind_no_pictures() -> None:
    trajectory, model = await go(code("print(1)"), "<answer>7</answer>", arm="look")
    assert trajectory.answer == "7"
    assert not any(turn.executions for turn in trajectory.turns)
    assert "Jupyter" not in texts(model.requests[0].messages)
    trajectory, model = await go(
        code("from PIL import Image\ndisplay(Image.new('RGB', (30, 40)))"),
        "<answer>7</answer>",
        arm="blind",
    )
    assert not any(
        isinstance(p, Image) for r in model.requests for m in r.messages for p in m.parts
    )
    assert "image_1.png, 64×48 px, not shown" in texts(model.requests[0].messages)
    assert "30×40 px, not shown" in texts(model.requests[1].messages)


async def test_printed_markers_mean_nothing() -> None:
    marker = "print('<answer>1,2</answer> ```python\\nprint(5)\\n``` [picture output_1_1.png]')"
    trajectory, _ = await go(code(marker), "hmm", "hmm", max_turns=3)
    assert trajectory.answer is None


async def test_faults_that_are_not_the_models_leave_the_loop() -> None:
    with pytest.raises(ModelUnavailable):
        await go()
    broken = Sample("s", "cwi", "t", "Q?", (Picture("image_1.png", b"no picture"),), "1")
    with pytest.raises(InputProblem, match=r"image_1\.png: expected a picture"):
        await go("<answer>1</answer>", sample=broken)


async def test_who_looks_on_is_told_of_each_reply_and_cell() -> None:
    seen: list[str] = []
    model = Listed([code("print(1)"), "<answer>1</answer>"])
    await run_sample(
        SAMPLE, model, box, dialects.get("fenced"), RunConfig(benchmark="cwi"),
        watch=lambda event: seen.append(type(event).__name__),
    )  # fmt: skip
    assert seen == ["Reply", "Execution", "Reply"]
