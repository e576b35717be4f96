"""Replies kept in the run's folder, so that a killed run is not billed twice.

The key is what is asked (the body as sent, pictures by hash), and which sample and repeat asks, so
that repeats stay independent; the server's address is no part of it. A file is whole before the
reply is handed on; one that cannot be read counts as absent and is replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from agent.codec import CodecError, reply_from_json, reply_to_json
from agent.files import faults_named, write_whole
from agent.messages import Model, Reply, Request
from agent.models.options import RequestOptions
from agent.models.wire import to_wire
from sandbox.closing import to_the_end


@runtime_checkable
class _WithOptions(Protocol):
    options: RequestOptions


class Cached:
    """A model whose replies are kept under `folder`. Those for `anew` (sample id and repeat) are
    asked for again, once, and replace what was kept."""

    def __init__(
        self, model: Model, folder: Path, anew: frozenset[tuple[str, int]] = frozenset()
    ) -> None:
        self.name = model.name
        self._model = model
        self._folder = folder
        self._anew = anew
        self._renewed: set[Path] = set()
        self._options = model.options if isinstance(model, _WithOptions) else RequestOptions()

    async def reply(self, request: Request) -> Reply:
        """The kept reply, marked `cached`, else the model's, kept before it is returned.

        Raises:
            ModelError: as the model's `reply`.
            DiskFull, RunDirError: the reply cannot be kept.
        """
        path = self._folder / f"{reply_key(request, self.name, self._options)}.json"
        again = (request.sample_id, request.repeat) in self._anew and path not in self._renewed
        kept = None if again else await asyncio.to_thread(_read, path)
        if kept is not None:
            return replace(kept, cached=True)
        reply = await self._model.reply(request)
        # A run that is ended right here has paid for this reply: the write is not cut off.
        await to_the_end(asyncio.to_thread(_write, path, reply))
        self._renewed.add(path)
        return reply


def reply_key(request: Request, model: str, options: RequestOptions) -> str:
    """64 hex digits."""
    body = to_wire(request, model, options, picture=lambda image: image.sha256)
    asked = [body, request.sample_id, request.repeat]
    text = json.dumps(asked, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _read(path: Path) -> Reply | None:
    try:
        loaded: object = json.loads(path.read_bytes())
        return reply_from_json(cast("dict[str, Any]", loaded)) if isinstance(loaded, dict) else None
    except (OSError, ValueError, RecursionError, CodecError):
        return None


def _write(path: Path, reply: Reply) -> None:
    with faults_named(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(reply_to_json(reply), ensure_ascii=True).encode("ascii"))
