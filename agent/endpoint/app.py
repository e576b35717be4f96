"""The HTTP side of the mock endpoint: routes, the key, faults by chance, the log."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TextIO, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.endpoint import conversation
from agent.endpoint.answerers import Answerer, Served, error


@dataclass(frozen=True, slots=True)
class Settings:
    """What stands between a request and its answer."""

    api_key: str | None = None
    """Asked for in `Authorization: Bearer …` when set."""
    delay: float = 0.0
    """Seconds before each answer."""
    fail_rate: float = 0.0
    """Share of the requests that are answered by one of `fail_status`."""
    fail_status: tuple[int, ...] = (429, 500)
    retry_after: float | None = None
    """Seconds, as the `Retry-After` of failures."""
    seed: int = 0


class Log:
    """One JSON line a request: in a file, opened by the `with` block, on disk before the answer is
    sent; without a path in `lines`."""

    def __init__(self, path: Path | None = None, *, bodies: bool = False) -> None:
        self.lines: list[dict[str, Any]] = []
        self.bodies = bodies
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = self._path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, line: dict[str, Any]) -> None:
        """Adds a line. `answered` says whether the client was given a completion."""
        if self._file is None:
            self.lines.append(line)
            return
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def make_app(
    answerer: Answerer, settings: Settings | None = None, log: Log | None = None
) -> Starlette:
    """An app with `/v1/models` and `/v1/chat/completions`."""
    handler = _Handler(answerer, settings or Settings(), log or Log())
    return Starlette(
        routes=[
            Route("/v1/models", handler.models, methods=["GET"]),
            Route("/v1/chat/completions", handler.completions, methods=["POST"]),
        ]
    )


class _Handler:
    def __init__(self, answerer: Answerer, settings: Settings, log: Log) -> None:
        self._answerer = answerer
        self._settings = settings
        self._log = log
        self._random = random.Random(settings.seed)
        self._count = 0

    async def models(self, request: Request) -> Response:
        """`GET /v1/models`."""
        refused = self._refused(request)
        if refused is not None:
            return _Answer(refused)
        entries = [{"id": name, "object": "model"} for name in self._answerer.models]
        return JSONResponse({"object": "list", "data": entries})

    async def completions(self, request: Request) -> Response:
        """`POST /v1/chat/completions`."""
        begin = time.monotonic()
        raw = await request.body()
        self._count += 1
        number = self._count
        body = _json_object(raw)
        served = self._refused(request) or self._failed()
        if served is None and body is None:
            served = error(400, "expected a JSON object as the body")
        elif served is None:
            served = await self._answerer.answer(body or {}, number)
        await asyncio.sleep(self._settings.delay + served.delay)
        gone = await request.is_disconnected()
        line: dict[str, Any] = {
            "number": number,
            "time": round(time.time(), 3),
            "sha256": hashlib.sha256(raw).hexdigest(),
            "model": (body or {}).get("model"),
            "turn": conversation.turn(body or {}),
            "pictures": conversation.count_pictures(body or {}),
            "status": served.status,
            "answered": served.status == 200 and served.completion and not served.cut and not gone,
            "seconds": round(time.monotonic() - begin, 4),
        }
        if self._log.bodies:
            line["body"] = body if body is not None else raw.decode("utf-8", "replace")
        self._log.write(line)
        return _Answer(served)

    def _refused(self, request: Request) -> Served | None:
        key = self._settings.api_key
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if key is None or given == key:
            return None
        # Some servers echo the key; clients must not pass that on.
        return error(401, f"Incorrect API key provided: {given}", "invalid_api_key")

    def _failed(self) -> Served | None:
        settings = self._settings
        if self._random.random() >= settings.fail_rate:
            return None
        status = self._random.choice(settings.fail_status)
        failure = error(status, f"this request was chosen to fail with {status}")
        after = settings.retry_after
        headers = {} if after is None else {"retry-after": f"{after:g}"}
        return Served(failure.body, status, headers)


class _Answer(Response):
    """Sends a `Served`; half of it where the connection is to be cut."""

    def __init__(self, served: Served) -> None:
        kind = "application/json" if served.body[:1] in (b"{", b"[") else "text/plain"
        headers = {"content-type": kind, **served.headers}
        super().__init__(served.body, served.status, headers)
        self._cut = served.cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._cut:
            await super().__call__(scope, receive, send)
            return
        head = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(head)
        half = bytes(self.body)[: len(self.body) // 2]
        # The server closes a connection whose body stays unfinished.
        await send({"type": "http.response.body", "body": half, "more_body": True})


def _json_object(raw: bytes) -> Mapping[str, Any] | None:
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
