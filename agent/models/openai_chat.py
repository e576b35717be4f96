"""The client for OpenAI-compatible servers: `/chat/completions`, not streamed, pictures inline.

The SDK sends; its own retries are off, so that one layer decides (`failures` says what an answer
means, tenacity waits). Neither key nor header values ever appear in a message.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, cast

import httpx2
import openai
import tenacity

from agent.messages import Reply, Request
from agent.models.completion import estimated_usage, read_completion
from agent.models.errors import AccessRefused, ModelError, ModelRefused, ModelUnavailable
from agent.models.failures import Verdict, judge, one_line, wants_max_completion_tokens
from agent.models.incoming import ACCEPTED, TooLong, bounded
from agent.models.options import Endpoint, Patience, RequestOptions
from agent.models.wire import to_wire

_LOG = logging.getLogger(__name__)
_LONGEST_BACKOFF = 30.0
_FOREIGN_TRIES = 3
"""Answers of a server that is none of ours before the run is stopped."""
_SECRET = 16
"""Characters of the shortest key that is blanked in completions."""


class OpenAIChat:
    """A model behind an OpenAI-compatible server; use it in an `async with` block.

    `notify` is told, in one line each, of waits and of what was adapted to the server.
    """

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        options: RequestOptions | None = None,
        patience: Patience | None = None,
        notify: Callable[[str], None] = _LOG.info,
    ) -> None:
        self.name = model
        self.options = options or RequestOptions()
        self._endpoint = endpoint
        self._patience = patience or Patience()
        self._notify = notify
        self._client: openai.AsyncOpenAI | None = None
        self._answered = False
        self._completed = False
        """Whether it has ever given a completion: then the address is right."""
        self._max_tokens_name = "max_tokens"

    async def __aenter__(self) -> Self:
        for name, value in self.options.headers.items():
            if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable()):
                raise AccessRefused(
                    f"--header {name}: expected printable ASCII in its name and value"
                )
        self._client = openai.AsyncOpenAI(
            api_key=self._endpoint.api_key,
            base_url=self._endpoint.base_url,
            max_retries=0,
            timeout=self.options.request_timeout,
            default_headers={"Accept-Encoding": ACCEPTED, **self.options.headers},
            # Keys and pictures go to the address that the user gave and to no other.
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False, event_hooks={"response": [bounded]}
            ),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def wire(self, request: Request) -> dict[str, Any]:
        """The body that stands for this request: what a cache keys on."""
        return to_wire(request, self.name, self.options)

    async def reply(self, request: Request) -> Reply:
        """One reply; waits failures out as `Patience` says.

        Raises:
            ModelUnavailable: not reached, or failing until time was up.
            ModelRefused: the server does not want this request; AccessRefused: nor any other,
                or it is no such server at all.
            ContextFull: the request is too long.
        """
        body = self.wire(request)
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(_Again),
            wait=self._wait,
            stop=self._stop,
            before_sleep=self._tell,
            retry_error_callback=self._give_up,
        )
        reply = cast(Reply, await retrying(self._attempt, body))
        if reply.usage.estimated:
            reply = replace(reply, usage=estimated_usage(request, reply))
        return reply

    async def _attempt(self, body: dict[str, Any]) -> Reply:
        assert self._client is not None, "OpenAIChat is used outside of its `async with` block"
        adapted = self._adapted(body)
        begin = time.monotonic()
        try:
            # `post` and not `chat.completions.create`: what is sent is the body, key by key, and
            # what comes back is text, since servers send shapes that the SDK's types do not hold.
            # The SDK's timeout is for one read; a server that drips never reaches it.
            async with asyncio.timeout(self.options.request_timeout):
                answer = await self._client.post(
                    "/chat/completions", cast_to=httpx2.Response, body=adapted
                )
            status, headers, text = answer.status_code, answer.headers, self._text(answer)
        except openai.APIStatusError as error:
            answer = error.response
            status, headers, text = answer.status_code, answer.headers, self._text(answer)
        except (openai.APITimeoutError, TimeoutError):
            seconds = self.options.request_timeout
            raise _Again(Verdict(f"no answer within {seconds:g} s (--request-timeout)")) from None
        except TooLong as error:
            raise self._error(ModelRefused, Verdict(str(error))) from None
        except openai.APIConnectionError as error:
            reason = one_line(str(error.__cause__ or error)) or "connection failed"
            raise _Again(Verdict(reason)) from None
        self._answered = True
        reply = _completion(text) if status < 400 else None
        if reply is not None:
            self._completed = True
            return replace(reply, seconds=time.monotonic() - begin)
        if "max_tokens" in adapted and wants_max_completion_tokens(status, text):
            self._rename_max_tokens()
            return await self._attempt(body)
        raise self._failure(status, {k.lower(): v for k, v in headers.items()}, text)

    def _text(self, answer: httpx2.Response) -> str:
        """JSON is UTF-8 whatever the header says. A key that the server gives back, in a completion
        too, is blanked; a short one is no secret and may be any word."""
        text = answer.content.decode("utf-8", "replace")
        key = self._endpoint.api_key
        return text.replace(key, "***") if len(key) >= _SECRET else text

    def _failure(self, status: int, headers: dict[str, str], text: str) -> Exception:
        """What to raise for an answer that is no completion: a `ModelError`, or `_Again`."""
        verdict = judge(status, headers, text, datetime.now(UTC))
        if verdict.error is not None:
            return self._error(verdict.error, verdict)
        if (verdict.wait or 0) > self._patience.longest_wait:
            asked = f"it asks to wait {verdict.wait:.0f} s; run again with --resume after that"
            return self._error(ModelUnavailable, replace(verdict, hint=asked))
        return _Again(verdict)

    def _rename_max_tokens(self) -> None:
        """From here on; several requests in flight may find out at once."""
        if self._max_tokens_name == "max_tokens":
            self._max_tokens_name = "max_completion_tokens"
            self._notify(f"{self.name}: max_tokens is sent as max_completion_tokens from here on")

    def _adapted(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body under the names that this server has asked for."""
        return {self._max_tokens_name if k == "max_tokens" else k: v for k, v in body.items()}

    def _wait(self, state: tenacity.RetryCallState) -> float:
        first = self._patience.first_wait
        doubling = tenacity.wait_exponential(multiplier=first, max=_LONGEST_BACKOFF)
        # Jitter on top, never below what the server asked for; it spreads the workers out.
        least = max(_verdict(state).wait or 0.0, doubling(state))
        jitter = tenacity.wait_random(0, max(0.1 * least, first / 2))
        return least + jitter(state)

    def _stop(self, state: tenacity.RetryCallState) -> bool:
        patience = self._patience
        if self._is_foreign(state) and state.attempt_number >= _FOREIGN_TRIES:
            return True
        limit = patience.total if self._answered else min(patience.total, patience.first_contact)
        return tenacity.stop_before_delay(limit)(state)

    def _is_foreign(self, state: tenacity.RetryCallState) -> bool:
        return _verdict(state).foreign and not self._completed

    def _tell(self, state: tenacity.RetryCallState) -> None:
        self._notify(
            self._clean(f"{_verdict(state).words}; asking again in {state.upcoming_sleep:.1f} s")
        )

    def _give_up(self, state: tenacity.RetryCallState) -> Reply:
        verdict = _verdict(state)
        seconds = state.seconds_since_start or 0
        tried = f"asked {self._endpoint.shown} {state.attempt_number} times in {seconds:.0f} s"
        hint = verdict.hint or ("" if self._answered else "is the server running?")
        kind = AccessRefused if self._is_foreign(state) else ModelUnavailable
        raise self._error(kind, replace(verdict, words=f"{tried}: {verdict.words}", hint=hint))

    def _error(self, kind: type[ModelError], verdict: Verdict) -> ModelError:
        return kind(self._clean(f"{self.name}: {verdict.message}"))

    def _clean(self, text: str) -> str:
        """Servers echo keys; ours and every header value are blanked."""
        secrets = {self._endpoint.api_key, *self.options.headers.values()}
        for secret in sorted((s for s in secrets if len(s) >= 6), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


class _Again(Exception):
    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.words)
        self.verdict = verdict


def _verdict(state: tenacity.RetryCallState) -> Verdict:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, _Again)
    return error.verdict


def _completion(text: str) -> Reply | None:
    """None for everything that is no completion, also with status 200."""
    try:
        body: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read_completion(cast("dict[str, Any]", body)) if isinstance(body, dict) else None
