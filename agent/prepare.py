"""From a config to a plan: samples, wall, dialect, model; and every `auto` resolved.

What cannot work is found here, before the first sample: missing data, no wall, no image, no key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from agent import dialects
from agent.config import RunConfig
from agent.errors import ConfigError
from agent.fitness import refuse_unfit
from agent.loop import Box
from agent.messages import Dialect, Model
from agent.models.local import HUMAN, local_dialect, local_model
from agent.models.openai_chat import OpenAIChat
from agent.models.options import RequestOptions, find_endpoint
from agent.models.replay import PREFIX, replayed
from agent.plan import OpenSeeded
from benchmarks.registry import LOADERS, load, pinned
from benchmarks.sample import Sample
from sandbox.session import open_box
from sandbox.spec import InputFile
from sandbox.wall import Wall
from sandbox.walls import check_limits, choose


def samples_of(config: RunConfig) -> dict[str, Sample]:
    """The chosen samples by id, every gold checked.

    Raises:
        BenchmarkError: as `benchmarks.load`. ConfigError: nothing is left, two have one id, or the
            model could never solve them.
    """
    refuse_unfit(config, ())
    found = load(
        config.benchmark,
        data=config.data,
        split=config.split,
        tasks=config.tasks or None,
        limit=config.limit,
        ids=config.ids or None,
    )
    if not found:
        raise ConfigError(f"{config.benchmark}: no samples in split {config.split!r} of the data")
    samples = {sample.id: sample for sample in found}
    if len(samples) < len(found):
        seen: set[str] = set()
        twice = next(s.id for s in found if s.id in seen or seen.add(s.id))
        raise ConfigError(f"{config.benchmark}: expected different ids, found {twice!r} twice")
    refuse_unfit(config, found)
    return samples


def fetched(config: RunConfig) -> RunConfig:
    """The config with data of the Hub downloaded and named by their commit.

    Raises:
        BenchmarkError: as `benchmarks.registry.pinned`.
    """
    if config.data is None or config.benchmark not in LOADERS:
        return config
    return replace(config, data=pinned(config.data, split=config.split, tasks=config.tasks or None))


def wall_of(config: RunConfig) -> Wall | None:
    """The wall that boxes are made with; None in the arm without a sandbox.

    Raises:
        SandboxUnavailable: none works here, or the image is missing; says what to install.
        LimitsRefused: more CPUs than the host has.
    """
    if config.arm == "look":
        return None
    wall = choose(config.sandbox, config.image_tag)
    check_limits(wall, config.limits())
    return wall


def dialect_of(config: RunConfig) -> Dialect:
    """`auto` is native tool calls; a server that has none refuses and says so. For models that need
    no server it is what they say.

    Raises:
        ConfigError, RunDirError: as `agent.models.local.local_dialect`.
    """
    said = local_dialect(config) or "tools"
    return dialects.get(said if config.dialect == "auto" else config.dialect)


def resolved(config: RunConfig, wall: Wall | None, dialect: Dialect) -> RunConfig:
    """The config without any `auto`, its folders absolute: what a resume uses."""
    data = os.path.abspath(config.data) if config.data and os.path.exists(config.data) else None  # noqa: PTH100, PTH110
    source = replayed(config.model)
    return replace(
        config,
        model=f"{PREFIX}{source.absolute()}" if source else config.model,
        sandbox=wall.name if wall else config.sandbox,
        dialect=dialect.name,
        data=data or config.data,
        workers=1 if config.model == HUMAN and config.base_url is None else config.workers,
    )


def model_of(config: RunConfig, note: Callable[[str], None]) -> AbstractAsyncContextManager[Model]:
    """The model, open inside the block; `note` is told of waits.

    Raises:
        AccessRefused: no key for a server that needs one. ConfigError, RunDirError: as
            `agent.models.local.local_model`.
    """
    if (local := local_model(config, note)) is not None:
        return local
    options = RequestOptions(
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_tokens,
        seed=config.seed,
        extra_body=config.extra_body,
        headers=config.headers,
        request_timeout=config.request_timeout,
    )
    endpoint = find_endpoint(config.base_url, os.environ)
    note(f"endpoint {endpoint.shown}")
    return OpenAIChat(config.model, endpoint, options, notify=note)


def opener(config: RunConfig, wall: Wall | None, run_id: str) -> OpenSeeded:
    """How this run's boxes are opened; `run_id` is in their labels."""

    def opened(files: Sequence[InputFile], seed: int) -> AbstractAsyncContextManager[Box]:
        return open_box(
            wall or "auto",
            inputs=files,
            limits=config.limits(),
            image=config.image_tag,
            run_id=run_id,
            seed=seed,
            runtime=config.runtime,
        )

    return opened
