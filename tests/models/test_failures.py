"""What a server's answer means: wait and ask again, refused in its own words, or too long."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.models.errors import AccessRefused, ContextFull, ModelError, ModelRefused
from agent.models.failures import judge, wants_max_completion_tokens

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def error(message: str, **more: Any) -> str:
    return json.dumps({"error": {"message": message, **more}})


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, error("Incorrect API key"), AccessRefused, "OPENAI_API_KEY"),
        (403, error("Country not supported"), AccessRefused, "permission"),
        (404, error("The model `x` does not exist"), AccessRefused, "The model `x` does not exist"),
        (404, '{"detail":"Not Found"}', AccessRefused, "--base-url"),
        (400, error("Unsupported value: 'temperature'"), ModelRefused, "temperature"),
        (400, '{"object":"error","message":"roles must alternate"}', ModelRefused, "alternate"),
        (422, '{"detail":[{"loc":["body","seed"]}]}', ModelRefused, "seed"),
        (
            400,
            error(
                "This model's maximum context length is 8192 tokens. However, you requested 9000"
            ),
            ContextFull,
            "8192",
        ),
        (400, error("prompt is too long: 210000 tokens > 200000 maximum"), ContextFull, "210000"),
        (400, error("the request exceeds the available context size"), ContextFull, "context"),
        (400, error("input too large", code="context_length_exceeded"), ContextFull, "input"),
        (
            400,
            error(
                "The decoder prompt (length 9001) is longer than the maximum model length of 8192"
            ),
            ContextFull,
            "9001",
        ),
        (413, error("Request exceeds the maximum size"), ContextFull, "413"),
        (413, "<html><body>413 Entity Too Large</body></html>", ContextFull, "Entity Too Large"),
        (500, error("image input is not supported by this server"), AccessRefused, "pictures"),
        (400, error("model x does not support image input"), AccessRefused, "pictures"),
        (
            429,
            error("You exceeded your current quota", code="insufficient_quota"),
            AccessRefused,
            "quota",
        ),
        (
            400,
            error("At least one of the image dimensions exceed 2000 pixels"),
            ModelRefused,
            "2000",
        ),
        (400, "", ModelRefused, "empty"),
    ],
)
def test_given_up(status: int, body: str, kind: type[ModelError], words: str) -> None:
    verdict = judge(status, {}, body, NOW)
    assert verdict.error is kind
    assert words in verdict.message
    assert "\n" not in verdict.message


@pytest.mark.parametrize(
    ("status", "headers", "body", "wait"),
    [
        (429, {}, error("slow down"), None),
        (429, {"retry-after": "5"}, error("x"), 5.0),
        (429, {"retry-after": "0"}, error("x"), 0.0),
        (429, {"retry-after-ms": "4320", "retry-after": "5"}, error("x"), 4.32),
        (429, {"retry-after": "Fri, 02 Jan 2026 03:04:35 GMT"}, error("x"), 30.0),
        (429, {"retry-after": "Fri, 02 Jan 2026 03:00:00 GMT"}, error("x"), 0.0),
        (429, {"retry-after": "soon"}, error("x"), None),
        (429, {"retry-after": "-3"}, error("x"), None),
        (429, {"retry-after": "nan"}, error("x"), None),
        (429, {}, error("Rate limit reached. Please try again in 4.32s."), 4.32),
        (429, {}, error("Please try again in 120ms."), 0.12),
        (503, {"retry-after": "198300"}, "<html>busy</html>", 198300.0),
        (500, {}, "", None),
        (502, {}, "<html><style>a{}</style><body>Bad <b>gateway</b></body></html>", None),
        (529, {}, error("overloaded"), None),
        (408, {}, "", None),
        (200, {}, '{"choices": null, "error": {"message": "Provider error", "code": 429}}', None),
        (200, {}, '{"choices": []}', None),
        (200, {}, "<html>login</html>", None),
        (200, {}, "", None),
        (200, {}, '{"torn', None),
        (200, {}, "[" * 100_000, None),
    ],
)
def test_asked_again(status: int, headers: dict[str, str], body: str, wait: float | None) -> None:
    verdict = judge(status, headers, body, NOW)
    assert verdict.error is None
    assert verdict.wait == wait
    assert "\n" not in verdict.message
    assert len(verdict.message) < 500


def test_an_error_inside_of_a_200_counts_as_what_it_says() -> None:
    verdict = judge(200, {}, error("no such key", code=401), NOW)
    assert verdict.error is AccessRefused
    assert "HTTP 401: no such key" in verdict.words


def test_a_web_page_is_told_as_its_text() -> None:
    words = judge(
        502, {}, "<html><style>a{}</style><body>Bad <b>gateway</b></body></html>", NOW
    ).words
    assert words == "HTTP 502: a web page: Bad gateway"


@pytest.mark.parametrize(
    ("status", "message", "wanted"),
    [
        (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", True),
        (400, "max_tokens is too large", False),
        (500, "Use 'max_completion_tokens' instead of 'max_tokens'", False),
    ],
)
def test_max_completion_tokens(status: int, message: str, wanted: bool) -> None:
    assert wants_max_completion_tokens(status, error(message)) is wanted
