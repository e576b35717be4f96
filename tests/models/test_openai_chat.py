"""The client against a real HTTP server: every request is counted in the server's log."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import re
import resource
import socket
import time
import zlib
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agent.endpoint import Log, Settings, make_app, serve
from agent.endpoint.scenario import ScenarioAnswers, Step
from agent.messages import Message, Reply, Request, Text
from agent.models.errors import (
    AccessRefused,
    ContextFull,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from agent.models.openai_chat import OpenAIChat
from agent.models.options import Endpoint, Patience, RequestOptions

KEY = "sk-very-secret-key"
HURRY = Patience(total=20, first_contact=0.3, longest_wait=5, first_wait=0.01)
ASK = Request((Message("user", (Text("what?"),)),))
RETRIED = Step(status=500, body={"error": {"message": "try again"}})
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@contextlib.asynccontextmanager
async def talking(
    *steps: Step,
    options: RequestOptions | None = None,
    patience: Patience = HURRY,
    settings: Settings | None = None,
    key: str = KEY,
) -> AsyncGenerator[tuple[OpenAIChat, list[dict[str, Any]], list[str]]]:
    """A client, the server's log (with bodies) and what the client told on the way."""
    log, told = Log(bodies=True), list[str]()
    app = make_app(ScenarioAnswers(steps), settings, log)
    async with (
        serve(app) as base_url,
        OpenAIChat("m", Endpoint(base_url, key, "test"), options, patience, told.append) as model,
    ):
        yield model, log.lines, told


async def outcome(model: OpenAIChat, request: Request = ASK) -> Reply | ModelError:
    try:
        return await model.reply(request)
    except ModelError as error:
        return error


def test_a_reply_with_usage_and_seconds() -> None:
    async def work() -> None:
        async with talking(Step(answer="5", delay=0.2)) as (model, log, _):
            reply = await model.reply(ASK)
            assert (reply.text, reply.finish_reason) == ("<answer>5</answer>", "stop")
            assert not reply.usage.estimated
            assert reply.usage.completion_tokens > 0
            assert 0.2 <= reply.seconds < 20
            assert [line["answered"] for line in log] == [True]

    run(work())


def test_the_body_arrives_as_it_was_made() -> None:
    async def work() -> None:
        options = RequestOptions(
            temperature=0.0, extra_body={"top_k": 1}, headers={"x-team": "a b"}
        )
        async with talking(Step(answer="1"), options=options) as (model, log, _):
            await model.reply(ASK)
            assert log[0]["body"] == model.wire(ASK)

    run(work())


@pytest.mark.parametrize(
    "failures",
    [
        [RETRIED],
        [RETRIED] * 5,
        [
            Step(status=429, headers={"retry-after": "0"}),
            Step(status=503, body="<html>busy</html>"),
        ],
        [Step(text="half", cut=True)],
        [Step(body="<html>proxy</html>"), Step(body="{torn"), Step(body="")],
        [Step(body={"choices": [], "usage": None})],
        [Step(body={"id": None, "choices": None, "error": {"message": "busy", "code": 429}})],
    ],
)
def test_failures_are_waited_out(failures: list[Step]) -> None:
    async def work() -> None:
        async with talking(*failures, Step(answer="5")) as (model, log, told):
            assert (await model.reply(ASK)).text == "<answer>5</answer>"
            assert len(log) == len(failures) + 1
            assert len({line["sha256"] for line in log}) == 1
            assert [line["answered"] for line in log] == [False] * len(failures) + [True]
            assert len(told) == len(failures)
            assert all("asking again in" in line for line in told)

    run(work())


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"retry-after": "0.4"}, 0.4),
        ({"retry-after-ms": "400", "retry-after": "9999"}, 0.4),
    ],
)
def test_retry_after_is_the_least_wait(headers: dict[str, str], least: float) -> None:
    async def work() -> None:
        steps = (
            Step(status=429, headers=headers, body={"error": {"message": "x"}}),
            Step(answer="5"),
        )
        async with talking(*steps) as (model, _, _):
            begin = time.monotonic()
            reply = await model.reply(ASK)
            elapsed = time.monotonic() - begin
            assert elapsed >= least
            assert reply.seconds <= elapsed - least  # the sleep is not the model's thinking

    run(work())


def test_a_wait_of_days_is_not_waited() -> None:
    async def work() -> None:
        days = Step(status=429, headers={"retry-after": "198300"}, body={"error": {"message": "x"}})
        async with talking(days) as (model, log, _):
            error = await outcome(model)
            assert isinstance(error, ModelUnavailable)
            assert "198300 s" in str(error)
            assert len(log) == 1

    run(work())


def test_retries_end() -> None:
    async def work() -> None:
        patience = Patience(total=0.5, first_wait=0.05)
        async with talking(*[RETRIED] * 100, patience=patience) as (model, log, _):
            error = await outcome(model)
            assert isinstance(error, ModelUnavailable)
            assert f"{len(log)} times" in str(error)
            assert 2 <= len(log) < 20
            assert "try again" in str(error)

    run(work())


@pytest.mark.parametrize(
    ("step", "kind", "words"),
    [
        (Step(status=400, body={"error": {"message": "bad seed"}}), ModelRefused, "bad seed"),
        (Step(status=404, body={"detail": "Not Found"}), AccessRefused, "--base-url"),
        (
            Step(status=400, body={"error": {"message": "maximum context length is 10 tokens"}}),
            ContextFull,
            "10 tokens",
        ),
        (Step(status=413, body="<html>413</html>"), ContextFull, "413"),
    ],
)
def test_refusals_are_not_asked_again(step: Step, kind: type[ModelError], words: str) -> None:
    async def work() -> None:
        async with talking(step) as (model, log, _):
            error = await outcome(model)
            assert type(error) is kind
            assert words in str(error)
            assert "\n" not in str(error)
            assert len(log) == 1

    run(work())


def test_a_wrong_key_is_one_line_without_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def work() -> None:
        wrong = "sk-some-other-key"
        options = RequestOptions(headers={"x-token": "header-secret"})
        settings = Settings(api_key=KEY)
        async with talking(key=wrong, options=options, settings=settings) as (model, log, told):
            error = await outcome(model)
            assert isinstance(error, AccessRefused)
            assert "HTTP 401" in str(error)
            assert "OPENAI_API_KEY" in str(error)
            assert "\n" not in str(error)
            shown = [
                str(error),
                repr(error),
                repr(options),
                *told,
                caplog.text,
                repr(model.__dict__),
            ]
            assert not any(wrong in text or "header-secret" in text for text in shown)
            assert len(log) == 1

    run(work())


def test_a_header_that_cannot_be_sent_is_refused_without_its_value() -> None:
    async def work() -> None:
        options = RequestOptions(headers={"x-name": "sécret"})
        with pytest.raises(AccessRefused, match="--header x-name") as caught:
            async with talking(options=options):
                pass
        assert "cret" not in str(caught.value)

    run(work())


def test_a_dead_server_is_told_soon() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        endpoint = Endpoint(f"http://user:word@127.0.0.1:{port}/v1", KEY, "--base-url")
        async with OpenAIChat("m", endpoint, patience=HURRY) as model:
            error = await outcome(model)
        assert isinstance(error, ModelUnavailable)
        assert f"127.0.0.1:{port}/v1 (--base-url)" in str(error)
        assert "is the server running?" in str(error)
        assert "word" not in str(error)

    run(work())


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (
            "<html><body>Please <b>log in</b></body></html>",
            "text/html",
            "(text/html): a web page: Please log in",
        ),
        (
            "OK, this is nginx",
            "text/plain; charset=utf-8",
            "(text/plain; charset=utf-8): no JSON: OK, this is nginx",
        ),
        (
            "\x00\x01binary",
            "application/octet-stream",
            "(application/octet-stream): no JSON: binary",
        ),
    ],
)
def test_somebody_elses_server_is_told_after_three_tries(body: str, kind: str, words: str) -> None:
    async def work() -> None:
        page = Step(body=body, headers={"content-type": kind})
        patience = Patience(total=60, first_contact=60, first_wait=0.01)
        async with talking(*[page] * 9, patience=patience) as (model, log, _):
            error = await outcome(model)
            assert type(error) is AccessRefused, "the run stops"
            assert words in str(error)
            assert "expected an OpenAI-compatible API; check --base-url" in str(error)
            assert "\n" not in str(error)
            assert len(log) == 3

    run(work())


def test_a_page_from_a_server_that_has_answered_is_waited_out() -> None:
    async def work() -> None:
        pages = [Step(body="<html>restarting</html>")] * 5
        patience = Patience(total=60, first_contact=60, first_wait=0.01)
        async with talking(Step(answer="1"), *pages, Step(answer="2"), patience=patience) as (
            model,
            log,
            _,
        ):
            assert (await model.reply(ASK)).text == "<answer>1</answer>"
            assert (await model.reply(ASK)).text == "<answer>2</answer>"
            assert len(log) == 7

    run(work())


def test_a_slow_answer_ends_at_the_request_timeout() -> None:
    async def work() -> None:
        options = RequestOptions(request_timeout=0.2)
        steps = Step(answer="1", delay=5), Step(answer="2")
        patience = Patience(total=20, first_contact=20, first_wait=0.01)
        async with talking(*steps, options=options, patience=patience) as (model, log, told):
            assert (await model.reply(ASK)).text == "<answer>2</answer>"
            assert "--request-timeout" in told[0]
            assert [line["answered"] for line in log] == [True]

    run(work())


@contextlib.asynccontextmanager
async def raw_server(*chunks: bytes, pause: float = 0.0) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """Sends these bytes to whoever asks, then closes; keeps what was asked."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            assert length is not None
            asked.append(head + await reader.readexactly(int(length[1])))
            for chunk in chunks:
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(pause)
            writer.close()
            await writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            done.set()

    done = asyncio.Event()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1", asked
        if asked:
            await asyncio.wait_for(done.wait(), 30)
            await asyncio.sleep(0.05)


COMPLETION = b'{"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]}'


def head_of(body: bytes, *headers: bytes) -> bytes:
    lines = (b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *headers, b"connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def asked_once(base_url: str, options: RequestOptions | None = None) -> Reply | ModelError:
    patience = Patience(total=0.01, first_contact=0.01, first_wait=0.01)
    async with OpenAIChat("m", Endpoint(base_url, KEY, "test"), options, patience) as model:
        return await outcome(model)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_follows_a_redirect(status: int) -> None:
    async def work() -> None:
        async with raw_server() as (elsewhere, followed):
            to = f"location: {elsewhere}/chat/completions\r\n".encode()
            answer = b"HTTP/1.1 %d Moved\r\n%scontent-length: 0\r\n\r\n" % (status, to)
            async with raw_server(answer) as (base_url, asked):
                found = await asked_once(base_url, RequestOptions(headers={"x-api-key": KEY}))
                assert isinstance(found, AccessRefused)
                assert f"sends us on to {elsewhere}" in str(found)
                assert "--base-url" in str(found)
                assert (len(asked), followed) == (1, [])

    run(work())


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_a_packed_answer_is_unpacked(packing: str) -> None:
    body = gzip.compress(COMPLETION) if packing == "gzip" else zlib.compress(COMPLETION)

    async def work() -> None:
        head = head_of(body, b"content-encoding: " + packing.encode())
        async with raw_server(head, body[:9], body[9:]) as (base_url, _):
            found = await asked_once(base_url)
            assert isinstance(found, Reply)
            assert found.text == "hi"

    run(work())


@pytest.mark.parametrize("charset", [b"rot13", b"utf-16", b"nothing", b"hex"])
def test_json_is_utf8_whatever_the_header_says(charset: bytes) -> None:
    body = COMPLETION.replace(b"hi", "é".encode())

    async def work() -> None:
        head = head_of(body, b"content-type: application/json; charset=" + charset)
        async with raw_server(head, body) as (base_url, _):
            found = await asked_once(base_url)
            assert isinstance(found, Reply)
            assert found.text == "é"

    run(work())


def test_a_key_that_comes_back_is_in_no_reply() -> None:
    async def work() -> None:
        async with talking(Step(text=f"you sent {KEY}, did you?")) as (model, _, _):
            assert (await model.reply(ASK)).text == "you sent ***, did you?"

    run(work())


@pytest.mark.parametrize("kind", ["packed", "plain", "as brotli"])
def test_an_answer_without_end_is_refused(kind: str) -> None:
    """A mebibyte at a time; what is packed would come to four gibibytes."""
    block = bytes(1 << 20)
    if kind == "packed":
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        packed = b"".join(packer.compress(block) for _ in range(4096)) + packer.flush()
        chunks = (head_of(packed, b"content-encoding: gzip"), packed)
    else:
        packing = (b"content-encoding: br",) if kind == "as brotli" else ()
        chunks = (head_of(bytes(400 << 20)[:0], *packing).replace(b": 0", b": 419430400"),)
        chunks += (block,) * 400

    async def work() -> None:
        async with raw_server(*chunks) as (base_url, _):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            found = await asked_once(base_url)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert isinstance(found, ModelRefused)
            assert ("'br'" if kind == "as brotli" else "more than 64 MiB") in str(found)
            assert grown < 400 * 1024

    run(work())


def test_a_torn_packing_is_asked_for_again() -> None:
    async def work() -> None:
        body = b"no gzip at all"
        async with raw_server(head_of(body, b"content-encoding: gzip"), body) as (base_url, _):
            found = await asked_once(base_url)
            assert isinstance(found, ModelUnavailable)
            assert "no gzip" in str(found)

    run(work())


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"],
    ids=["headers", "body"],
)
def test_a_dripping_answer_ends_at_the_request_timeout(start: bytes) -> None:
    async def work() -> None:
        drips = (b"x: y\r\n" if not start.endswith(b"\r\n\r\n") else b" ",) * 600
        async with raw_server(start, *drips, pause=0.05) as (base_url, _):
            begin = time.monotonic()
            found = await asked_once(base_url, RequestOptions(request_timeout=0.5))
            assert isinstance(found, ModelUnavailable)
            assert "--request-timeout" in str(found)
            assert time.monotonic() - begin < 15

    run(work())


def test_max_tokens_is_renamed_once_for_the_run() -> None:
    async def work() -> None:
        message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        # Slow, so that both first requests are on their way before either is refused.
        no = Step(status=400, body={"error": {"message": message}}, delay=1.0)
        options = RequestOptions(max_tokens=7)
        async with talking(no, no, Step(answer="1", times=3), options=options) as talk:
            model, log, told = talk
            await asyncio.gather(model.reply(ASK), model.reply(ASK))
            await model.reply(ASK)
            names = ("max_tokens", "max_completion_tokens")
            sent = [tuple(line["body"].get(name) for name in names) for line in log]
            assert sent == [(7, None)] * 2 + [(None, 7)] * 3
            assert len(told) == 1

    run(work())


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": None, "completion_tokens": 5}])
def test_missing_usage_is_estimated_and_marked(usage: object) -> None:
    async def work() -> None:
        body = {
            "choices": [{"finish_reason": "stop", "message": {"content": "x" * 40}}],
            "usage": usage,
        }
        async with talking(Step(body=body)) as (model, _, _):
            reply = await model.reply(ASK)
            assert reply.usage.estimated
            assert reply.usage.completion_tokens == 10

    run(work())


def test_blocked_content_is_a_reply() -> None:
    async def work() -> None:
        body = {"choices": [{"index": 0, "finish_reason": "content_filter", "message": None}]}
        async with talking(Step(body=body)) as (model, log, _):
            reply = await model.reply(ASK)
            assert (reply.text, reply.finish_reason) == ("", "content_filter")
            assert len(log) == 1

    run(work())


def test_many_requests_at_once_through_a_failing_server(tmp_path: Path) -> None:
    async def work() -> None:
        settings = Settings(fail_rate=0.4, fail_status=(429, 500), retry_after=0.01, seed=3)
        async with talking(Step(answer="1", times=40), settings=settings) as (model, log, _):
            requests = [Request((Message("user", (Text(f"q{n}"),)),)) for n in range(40)]
            replies = await asyncio.gather(*(model.reply(request) for request in requests))
            assert len(replies) == 40
            assert sum(line["answered"] for line in log) == 40
            failed = [line["status"] for line in log if not line["answered"]]
            assert {429, 500} == set(failed)

    run(work())
