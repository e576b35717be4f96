"""Limits of a sample and of a request: what is counted, what is cut."""

from __future__ import annotations

from agent.budget import Budget, fit_pictures
from agent.config import RunConfig
from agent.messages import Image, Message, Reply, Text, Usage
from sandbox.outputs import Execution


def image(name: str, origin: str = "box", size: int = 10) -> Image:
    assert origin in ("box", "prompt")
    return Image(b"x" * size, "image/png", 50, 40, name, origin, 50, 40)


def config(**values: object) -> RunConfig:
    return RunConfig(benchmark="cwi", **values)  # pyright: ignore[reportArgumentType]


HISTORY = (
    Message("user", (Text("q"), image("image_1.png", "prompt"))),
    Message("user", (Text("a"), image("output_1_1.png"), image("output_1_2.png"))),
    Message("user", (Text("b"), image("output_2_1.png"))),
)


def names(messages: tuple[Message, ...]) -> list[str]:
    return [p.name for m in messages for p in m.parts if isinstance(p, Image)]


def test_within_the_budget_nothing_changes() -> None:
    assert fit_pictures(HISTORY, config(max_images=4)) == HISTORY


def test_the_oldest_box_pictures_go_first_and_the_prompts_never() -> None:
    fitted = fit_pictures(HISTORY, config(max_images=2))
    assert names(fitted) == ["image_1.png", "output_2_1.png"]
    assert "output_1_1.png is no longer shown" in fitted[1].text
    assert fitted[0] == HISTORY[0]
    assert names(fit_pictures(HISTORY, config(max_images=1))) == ["image_1.png"]


def test_bytes_count_too() -> None:
    big = (HISTORY[0], Message("user", (image("a.png", size=90), image("b.png", size=90))))
    fitted = fit_pictures(big, config(max_image_bytes=101))
    assert names(fitted) == ["image_1.png", "b.png"]


def test_the_prompts_pictures_stay_even_when_they_alone_are_too_many() -> None:
    prompt = (Message("user", tuple(image(f"image_{n}.png", "prompt") for n in range(5))),)
    assert fit_pictures(prompt, config(max_images=2)) == prompt


def test_tokens_seconds_and_deaths() -> None:
    budget = Budget(config(token_limit=100, time_limit=10, max_tokens=80, cell_seconds=30))
    assert budget.max_tokens == 80
    budget.count_reply(Reply("x", usage=Usage(1000, 60), seconds=4))
    assert (budget.tokens_left, budget.max_tokens, budget.seconds_left) == (40, 40, 6)
    budget.count_cell(Execution((), "died", "exit:1", "restarted", 2.5, 0, 0))
    assert (budget.cell_seconds, budget.deaths) == (3.5, 1)
    budget.count_reply(Reply("x", usage=Usage(0, 60), seconds=40))
    assert (budget.tokens_left, budget.seconds_left, budget.max_tokens) == (0, 0, 1)
    assert Budget(config()).max_tokens is None
