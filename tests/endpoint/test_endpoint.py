"""The mock endpoint as a server: what it serves, logs and refuses."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from PIL import Image as Pillow

from agent.endpoint import Log, Settings, make_app, serve
from agent.endpoint.answerers import Answerer, ScriptedAnswers
from agent.endpoint.gold import GoldAnswers
from agent.endpoint.scenario import ScenarioAnswers, ScenarioError, Step, read_scenario
from benchmarks.cwi.tasks import TASKS
from benchmarks.sample import Picture, Sample

Json = dict[str, Any]


def post(
    answerer: Answerer,
    *bodies: Json | bytes,
    settings: Settings | None = None,
    log: Log | None = None,
    key: str = "",
) -> list[httpx2.Response]:
    """The answers to requests sent one after the other."""

    async def work() -> list[httpx2.Response]:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with (
            serve(make_app(answerer, settings, log)) as base_url,
            httpx2.AsyncClient(base_url=base_url, headers=headers) as client,
        ):
            contents = [b if isinstance(b, bytes) else json.dumps(b).encode() for b in bodies]
            return [await client.post("/chat/completions", content=c) for c in contents]

    return asyncio.run(work())


def user(*parts: str | bytes, **more: Any) -> Json:
    """A body with one user message of texts and pictures."""
    content = [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": url(part)}}
        for part in parts
    ]
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}


def url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def text_of(response: httpx2.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def test_models_and_unknown_paths() -> None:
    async def work() -> None:
        async with (
            serve(make_app(ScriptedAnswers())) as base_url,
            httpx2.AsyncClient(base_url=base_url) as client,
        ):
            assert base_url.startswith("http://127.0.0.1:")
            assert base_url.endswith("/v1")
            listed = (await client.get("/models")).json()
            assert [entry["id"] for entry in listed["data"]] == ["scripted"]
            assert (await client.get("/nothing")).status_code == 404
            assert (await client.get("/chat/completions")).status_code == 405

    asyncio.run(work())


def question() -> str:
    opening = next(iter(TASKS.values())).opening
    return f"{opening}\nimage_1.png: /mnt/data/image_1.png, 8×8 px, sent at 8×8 (scale 1)"


@pytest.mark.parametrize(
    ("dialect", "more", "tool_calls", "text"),
    [
        ("auto", {}, False, "```python\nPATH = '/mnt/data/image_1.png'"),
        ("auto", {"stop": ["</code>"]}, False, "<code>\nPATH"),
        ("auto", {"tools": [{"type": "function"}]}, True, ""),
        ("fenced", {"tools": [{"type": "function"}]}, False, "```python"),
        ("tools", {}, True, ""),
    ],
)
def test_reference_programs_in_any_dialect(
    dialect: Any, more: Json, tool_calls: bool, text: str
) -> None:
    (response,) = post(ScriptedAnswers(dialect), user(question(), **more))
    choice = response.json()["choices"][0]
    assert bool(choice["message"].get("tool_calls")) is tool_calls
    assert text in choice["message"]["content"]
    assert choice["finish_reason"] == ("tool_calls" if tool_calls else "stop")
    assert response.json()["usage"]["completion_tokens"] > 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{torn", "JSON object"),
        (b"[]", "JSON object"),
        ({"model": "m"}, "'messages'"),
        ({"messages": []}, "'messages'"),
        ({"messages": [{"content": "x"}]}, "role"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": 1}]}]}, "form of the API"),
        (user("what is this?"), "scripted"),
    ],
)
def test_bad_requests_are_told(body: Json | bytes, words: str) -> None:
    log = Log()
    (response,) = post(ScriptedAnswers(), body, log=log)
    assert response.status_code == 400
    assert words in response.json()["error"]["message"]
    assert [line["answered"] for line in log.lines] == [False]


def test_the_key_is_asked_for() -> None:
    step = ScenarioAnswers((Step(answer="1", times=9),))
    settings = Settings(api_key="sk-right")
    assert post(step, user("x"), settings=settings)[0].status_code == 401
    assert post(step, user("x"), settings=settings, key="sk-wrong")[0].status_code == 401
    assert post(step, user("x"), settings=settings, key="sk-right")[0].status_code == 200


def picture(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    return png(Pillow.fromarray(pixels).resize((240, 160), Pillow.Resampling.BICUBIC))


def png(image: Pillow.Image, form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


def sample(number: int, prompt: str, *pictures: bytes) -> Sample:
    named = tuple(Picture(f"image_{n}.png", data) for n, data in enumerate(pictures, start=1))
    return Sample(f"t/test/{number}", "cwi", "t", prompt, named, f"gold {number}")


def test_gold_finds_the_item() -> None:
    same = "Where is it? Answer x,y."
    answerer = GoldAnswers(
        [
            *(sample(n, same, picture(n)) for n in range(20)),
            sample(20, "Two of them.", picture(1), picture(2)),
            sample(21, "Two of them.", picture(2), picture(1)),
            sample(22, "The same picture, another question.", picture(3)),
        ]
    )
    shrunk = Pillow.open(io.BytesIO(picture(7))).resize((90, 60))
    responses = post(
        answerer,
        user(same, "image_1.png: …", picture(4)),
        user(same, png(shrunk, "JPEG")),
        user("Two of them.", picture(2), picture(1)),
        user("The same picture, another question.", picture(3)),
        user(same, picture(99)),
        user("Never asked", picture(4)),
        user(same),
        user("The same picture, another question."),
        user(same, b"no picture"),
    )
    texts = [text_of(r) if r.status_code == 200 else r.status_code for r in responses]
    assert texts == [
        "<answer>gold 4</answer>",
        "<answer>gold 7</answer>",
        "<answer>gold 21</answer>",
        "<answer>gold 22</answer>",
        400,
        400,
        400,
        "<answer>gold 22</answer>",
        400,
    ]


def test_log_has_a_line_a_request_and_bodies_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    body = user("look", picture(1), picture(2))
    body["messages"].append({"role": "assistant", "content": "hm"})
    with Log(path, bodies=True) as log:
        post(ScenarioAnswers((Step(answer="1"), Step(status=500))), body, body, body, log=log)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["answered"] for line in lines] == [True, False, False]
    assert [line["status"] for line in lines] == [200, 500, 400]
    assert [(line["number"], line["turn"], line["pictures"]) for line in lines] == [
        (1, 2, 2),
        (2, 2, 2),
        (3, 2, 2),
    ]
    assert len({line["sha256"] for line in lines}) == 1
    assert lines[0]["body"] == body
    assert log.lines == []


def test_failures_come_at_their_rate_and_by_the_seed() -> None:
    def statuses(seed: int) -> list[int]:
        settings = Settings(fail_rate=0.3, fail_status=(429, 503), retry_after=2, seed=seed)
        answers = ScenarioAnswers((Step(answer="1", times=200),))
        responses = post(answers, *[user("x")] * 200, settings=settings)
        assert {r.headers.get("retry-after") for r in responses if r.status_code != 200} == {"2"}
        return [response.status_code for response in responses]

    first = statuses(1)
    assert 30 <= sum(status != 200 for status in first) <= 90
    assert set(first) == {200, 429, 503}
    assert statuses(1) == first
    assert statuses(2) != first


def test_scenario_steps_of_a_turn_and_in_order() -> None:
    second = user("x")
    second["messages"].append({"role": "assistant", "content": "hm"})
    answers = ScenarioAnswers(
        (
            Step(code="a()"),
            Step(answer="9", turn=2),
            Step(message={"content": None, "refusal": "no"}),
        )
    )
    responses = post(answers, user("x"), second, second, user("x"), user("x"))
    assert [text_of(r) for r in responses[:3]] == [
        "```python\na()\n```",
        *["<answer>9</answer>"] * 2,
    ]
    assert responses[3].json()["choices"][0]["message"]["refusal"] == "no"
    assert responses[4].status_code == 400


@pytest.mark.parametrize("form", ["list", "lines"])
def test_scenario_files(tmp_path: Path, form: str) -> None:
    steps: list[Json] = [
        {"answer": "1"},
        {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": {}}},
    ]
    lines = "\n\n".join(json.dumps(step) for step in steps)
    path = tmp_path / "scenario"
    path.write_text(json.dumps(steps) if form == "list" else lines)
    first, second = read_scenario(path)
    assert (first.answer, first.status) == ("1", 200)
    assert (second.status, second.headers, second.body) == (
        429,
        {"retry-after": "1"},
        {"error": {}},
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "expected a scenario file"),
        ("{torn", "JSON lines"),
        ('[{"answer": "1"}, {"reply": "x"}]', "step 2: unknown: reply"),
        ('[{"status": "high"}]', "step 1: status"),
        ('["x"]', "step 1"),
    ],
)
def test_scenario_faults_name_the_step(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "scenario"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ScenarioError, match=words) as caught:
        read_scenario(path)
    assert "\n" not in str(caught.value)


def test_a_taken_port_is_an_error() -> None:
    async def work() -> None:
        async with serve(make_app(ScriptedAnswers())) as base_url:
            port = int(base_url.split(":")[2].removesuffix("/v1"))
            with pytest.raises(OSError, match="use"):
                async with serve(make_app(ScriptedAnswers()), port):
                    pass

    asyncio.run(work())
