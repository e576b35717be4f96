"""What a failed answer of a server means: wait and ask again, give up, or the context is full.

Pure: from status, headers and body to a `Verdict`. The server's own words stay in the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from agent.models.errors import AccessRefused, ContextFull, ModelError, ModelRefused

_CONTEXT = re.compile(
    r"context.{0,20}(length|window|size|limit)|maximum.{0,20}(context|prompt|input).{0,10}(length|token)"
    r"|(prompt|input|request|message)s?.{0,40}too (long|large|many tokens)|too many (input )?tokens"
    r"|exceeds? the (available|maximum) context|string_above_max_length|exceeds the maximum size"
    r"|maximum model length",
    re.IGNORECASE | re.DOTALL,
)
_NO_PICTURES = re.compile(
    r"image input is not supported|(not|n't) support (image|vision|multimodal)|no.{0,10}multimodal",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_WAIT_IN_TEXT = re.compile(r"try again in ([\d.]{1,10})\s?(ms|s|m)\b", re.IGNORECASE)
_RETRIED = frozenset({408, 409, 425, 429})
_ACCESS = {
    401: "check the key in OPENAI_API_KEY",
    402: "the account cannot pay for the request",
    403: "the key has no permission for this model or address",
    404: "check --model and --base-url (it usually ends in /v1)",
    405: "check --base-url (it usually ends in /v1)",
    501: "the server has no such function",
}
_MOST_WORDS = 300
"""Characters of the server's words that are kept."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`error` None: ask again, after `wait` seconds at least."""

    words: str
    """One line: the status and what the server said."""
    error: type[ModelError] | None = None
    hint: str = ""
    wait: float | None = None
    foreign: bool = False
    """Success, but no JSON: somebody else's page, most likely at a wrong address."""

    @property
    def message(self) -> str:
        return f"{self.words}; {self.hint}" if self.hint else self.words


def judge(status: int, headers: Mapping[str, str], body: str, now: datetime) -> Verdict:
    """The verdict on an HTTP answer that is no usable completion. `headers` in lower case.

    A status of 200 stands for a body that is an error, empty or no JSON at all.
    """
    said, code = _error(body)
    if status < 400 and 400 <= code < 600:
        status = code
    words = f"HTTP {status}: {said}" if status != 200 else f"no completion in the answer: {said}"
    if status == 413 or (status in (400, 422) and _CONTEXT.search(said)):
        return Verdict(words, ContextFull)
    if status in (400, 422, 500) and _NO_PICTURES.search(said):
        return Verdict(words, AccessRefused, "choose a model that takes pictures")
    if status in _ACCESS:
        return Verdict(words, AccessRefused, _ACCESS[status])
    if status == 429 and _QUOTA.search(said):
        return Verdict(words, AccessRefused, "the account's quota is used up")
    if 300 <= status < 400:
        to = one_line(headers.get("location", "")) or "no address"
        hint = "nothing was sent there; if it is right, give it as --base-url"
        return Verdict(f"HTTP {status}: the server sends us on to {to}", AccessRefused, hint)
    if status in _RETRIED or status >= 500:
        return Verdict(words, wait=_wait(headers, said, now))
    if status < 400:
        return _no_completion(words, headers, body)
    return Verdict(words, ModelRefused)


def _no_completion(words: str, headers: Mapping[str, str], body: str) -> Verdict:
    try:
        json.loads(body)
        foreign = False
    except (ValueError, RecursionError):
        # Torn JSON and an empty body are a server's bad moment; other text is another server.
        foreign = bool(body.strip()) and body.lstrip()[0] not in "{["
    if foreign:
        kind = one_line(headers.get("content-type", "") or "no content type")
        words = words.replace(": ", f" ({kind}): ", 1)
    hint = "expected an OpenAI-compatible API; check --base-url, it usually ends in /v1"
    return Verdict(words, hint=hint, foreign=foreign)


def wants_max_completion_tokens(status: int, body: str) -> bool:
    """Whether a model refuses `max_tokens` and asks for the newer name."""
    said, _ = _error(body)
    return status in (400, 422) and "max_tokens" in said and "max_completion_tokens" in said


def one_line(text: str) -> str:
    """Without line breaks and control characters, and not too long."""
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip()
    return line if len(line) <= _MOST_WORDS else line[: _MOST_WORDS - 1] + "…"


def _error(body: str) -> tuple[str, int]:
    """The server's words, and a status that stands in the body (0: none)."""
    try:
        loaded: object = json.loads(body)
    except (ValueError, RecursionError):
        kind = "a web page" if "<html" in body[:500].lower() else "no JSON"
        text = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", body[:20_000], flags=re.S)
        return f"{kind}: {one_line(text)}" if body.strip() else "an empty body", 0
    fields = cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}
    error: object = fields.get("error") or fields.get("message") or fields.get("detail")
    if not isinstance(error, dict):
        inner, message = fields, error
    else:
        inner = cast("dict[str, Any]", error)
        message = inner.get("message") or inner
    code: object = inner.get("code")
    said = message if isinstance(message, str) else json.dumps(message or loaded)
    if isinstance(code, str) and not code.isdecimal():
        return one_line(said if code in said else f"{said} ({code})"), 0
    return one_line(said), int(code) if isinstance(code, int | str) else 0


def _wait(headers: Mapping[str, str], said: str, now: datetime) -> float | None:
    """Seconds: `retry-after-ms`, `Retry-After` in seconds or as a date, else from the words."""
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    after = headers.get("retry-after", "")
    if (seconds := _number(after)) is not None:
        return seconds
    if after:
        try:
            when = parsedate_to_datetime(after)
        except ValueError:
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0.0, (when - now).total_seconds())
    found = _WAIT_IN_TEXT.search(said)
    value = _number(found.group(1)) if found else None
    if found is None or value is None:
        return None
    return value * {"ms": 0.001, "s": 1.0, "m": 60.0}[found.group(2).lower()]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
