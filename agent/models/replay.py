"""`replay:RUN`: a model that says again what another run's model said, reply by reply.

So loop, sandbox and scorer can be run again without a server, over some of the samples, on another
wall, with changed code. It knows a run's records and nothing of what is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.codec import CodecError
from agent.config import RunConfig
from agent.errors import RunDirError
from agent.messages import Reply, Request
from agent.models.errors import ContextFull, ModelRefused
from agent.rundir import Key, RunDir
from agent.trajectory import Result, Trajectory

PREFIX = "replay:"


def replayed(model: str) -> Path | None:
    """The run that `replay:RUN` names; None for another model."""
    return Path(model.removeprefix(PREFIX)) if model.startswith(PREFIX) else None


class Replayed:
    """The model `replay:RUN`."""

    def __init__(self, path: Path) -> None:
        """Raises RunDirError: no run there."""
        self.name = f"{PREFIX}{path}"
        try:
            self.run = RunDir.open(path)
        except RunDirError as error:
            raise RunDirError(f"--model {PREFIX}{error}") from error

    def config(self) -> RunConfig:
        """The settings that the replies were given under.

        Raises:
            RunDirError, ConfigError: they cannot be read.
        """
        return self.run.read_config()

    def facts(self) -> Mapping[str, Any]:
        """What a run that replays this one says of it in its `config.json`."""
        about = self.run.read_json("config.json")
        whose = {name: about.get(name) for name in ("created", "data_sha256", "prompt_sha256")}
        return {"run": str(self.run.path), "model": self.config().model, **whose}

    async def reply(self, request: Request) -> Reply:
        """The reply that the record of this sample and repeat has for this turn.

        Raises:
            ModelRefused: the record, or a reply in it for this turn, is not there.
            ContextFull: it was, at this turn of that run.
        """
        key = (request.sample_id, request.repeat)
        then = await asyncio.to_thread(self._trajectory, key)
        if request.turn <= len(then.turns):
            return replace(then.turns[request.turn - 1].reply, cached=False)
        if then.stop == "context_full" and request.turn == len(then.turns) + 1:
            raise ContextFull(f"{self.name}: the context was full at turn {request.turn}")
        raise ModelRefused(
            f"{self.name}: expected a reply for turn {request.turn} of {_named(key)}, found "
            f"{len(then.turns)} and then {then.stop}; give the settings of that run "
            "(--max-turns, --token-limit, --time-limit, --dialect, --arm)"
        )

    def _trajectory(self, key: Key) -> Trajectory:
        path = self.run.record_path(key)
        if not path.exists():
            count = sum(1 for _ in self.run.samples.glob("*.json"))
            hint = "choose what it has with --ids, --tasks, --limit, --repeats"
            raise ModelRefused(
                f"{self.name}: expected a record of {_named(key)}, found none among {count}; {hint}"
            )
        try:
            result = self.run.read(path, load=lambda _: b"")
        except CodecError as error:
            raise ModelRefused(f"{path}: expected a record, cannot be read: {error}") from error
        if result.trajectory is None:
            raise ModelRefused(f"{self.name}: expected replies to {_named(key)}, {_lost(result)}")
        return result.trajectory


def _named(key: Key) -> str:
    return f"{key[0]!r}, repeat {key[1]}"


def _lost(result: Result) -> str:
    failure = result.failure
    return f"found a failure ({failure.kind}: {failure.message})" if failure else "found none"
