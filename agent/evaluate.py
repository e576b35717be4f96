"""A run from beginning to end: its folder, what is written about it, doing it, doing the rest.

finished = asyncio.run(evaluate(RunConfig("cwi", data="items")))
print(finished.summary["accuracy"], finished.run.path)
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast, get_args

from agent.config import HIDDEN, RunConfig, from_json
from agent.errors import ConfigError, NothingRan, RunDirError
from agent.facts import data_hash, facts
from agent.messages import Dialect
from agent.models.cache import Cached
from agent.models.replay import Replayed, replayed
from agent.plan import Plan
from agent.prepare import dialect_of, fetched, model_of, opener, resolved, samples_of, wall_of
from agent.progress import Silent, Watcher
from agent.report import write_report
from agent.run import Finished, execute
from agent.rundir import Key, RunDir, default_path
from agent.stats import Item, Row, items, row
from agent.trajectory import Stop
from benchmarks.sample import Outcome, Sample
from sandbox import doctor
from sandbox.image import image_facts
from sandbox.reaper import guard
from sandbox.wall import Wall

VERSION = 1
FREE_TO_CHANGE = frozenset({"workers", "request_timeout", "base_url", "headers"})
"""Settings that a resume may change without --force: they change no result."""

Watching = Callable[[Sequence[Item], Mapping[Key, Row], RunConfig], AbstractContextManager[Watcher]]
"""Opens what a person looks at, given what is owed, what is there already, and the config."""


@contextmanager
def unwatched(
    owed: Sequence[Item], rows: Mapping[Key, Row], config: RunConfig
) -> Generator[Watcher]:
    """For programs: nothing is shown."""
    del owed, rows, config
    yield Silent()


@dataclass(frozen=True, slots=True)
class Ready:
    """A checked config and what it stands for; making it leaves nothing behind."""

    config: RunConfig
    samples: Mapping[str, Sample]
    wall: Wall | None
    dialect: Dialect

    @property
    def owed(self) -> list[Item]:
        return items(list(self.samples.values()), self.config.repeats)


def ready(config: RunConfig) -> Ready:
    """Loads the data and chooses the wall.

    Raises:
        ConfigError, BenchmarkError: bad input. SandboxUnavailable: no box can be made here.
    """
    config = fetched(config)
    samples = samples_of(config)
    dialect = dialect_of(config)
    wall = wall_of(config)
    return Ready(resolved(config, wall, dialect), samples, wall, dialect)


async def evaluate(
    config: RunConfig,
    out: Path | None = None,
    *,
    force: bool = False,
    watching: Watching = unwatched,
) -> Finished:
    """A new run in `out` (default: a new folder under `runs/`).

    Raises:
        ConfigError, BenchmarkError, RunDirError: bad input; nothing is left behind.
        SandboxUnavailable, AccessRefused: no box can be made, or there is no key.
        NothingRan: no sample came to a record; nothing is left behind.
    """
    path = out or default_path(config.benchmark, config.model)
    RunDir.refuse_taken(path, force=force)
    source = replayed(config.model)
    if source is not None and path.resolve() == source.resolve():
        raise ConfigError(f"--out {path}: it is the run that is replayed; choose another folder")
    made = await asyncio.to_thread(ready, config)
    model_of(made.config, Silent().note)  # a missing key is found before the folder is made
    about = await asyncio.to_thread(_about, made)
    run = RunDir.create(path, force=force)
    with run.lock():
        try:
            run.write_json("config.json", about)
            run.write_owed(made.owed)
        except RunDirError:
            run.remove_if_empty()
            raise
        finished = await _go_on(made, run, {}, watching)
        if finished.stopped and not finished.rows:
            run.remove_if_empty()
            kept = f"; its replies are kept: pot run --resume {path}" if path.exists() else ""
            raise NothingRan(finished.stopped + kept)
        return finished


async def resume(
    path: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    force: bool = False,
    retry: Sequence[str] = (),
    watching: Watching = unwatched,
) -> Finished:
    """Runs what is missing or failed in a run directory, and what ended as `retry` says: outcomes
    (`no_span`, …) and stops (`token_limit`, …). Their replies are asked for anew.

    Raises:
        As `evaluate`; ConfigError also when settings or data are not those of the run and `force`
        is not given.
    """
    run = RunDir.open(path)
    with run.lock():
        made, about, saved = await asyncio.to_thread(_again, run, changes or {}, force)
        run.sweep()
        notes: list[str] = []
        rows = {(r.id, r.repeat): row(r) for r in run.results(notes.append)}
        anew = _ended_as(retry, rows)
        _log_resume(run, about, saved, made.config, retry)
        run.write_owed(made.owed)
        return await _go_on(made, run, rows, watching, notes, anew)


def what_is_left(
    path: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    force: bool = False,
    retry: Sequence[str] = (),
) -> tuple[Ready, dict[Key, Row]]:
    """What `resume` would run: all of it, and the records that would stay. Changes nothing.

    Raises:
        As `resume`.
    """
    run = RunDir.open(path)
    made, _, _ = _again(run, changes or {}, force)
    ignored: list[str] = []
    rows = {(r.id, r.repeat): row(r) for r in run.results(ignored.append, move=False)}
    anew = _ended_as(retry, rows)
    return made, {key: found for key, found in rows.items() if key not in anew}


def _ended_as(words: Sequence[str], rows: Mapping[Key, Row]) -> frozenset[Key]:
    known = (*get_args(Outcome), *get_args(Stop))
    for word in words:
        if word not in known:
            hint = f"expected some of {', '.join(known)}; what failed is always tried again"
            raise ConfigError(f"--retry {word}: {hint}")
    return frozenset(k for k, found in rows.items() if {found.outcome, found.stop} & {*words})


def _again(
    run: RunDir, changes: Mapping[str, Any], force: bool
) -> tuple[Ready, dict[str, Any], RunConfig]:
    """A run made ready from its own `config.json`, that file, and the config in it."""
    about, saved = run.read_json("config.json"), run.read_config()
    made = ready(_changed(saved, changes, force))
    if data_hash(list(made.samples.values())) != about.get("data_sha256") and not force:
        raise ConfigError(f"--resume {run.path}: the data have changed; --force goes on with them")
    return made, about, saved


async def _go_on(
    made: Ready,
    run: RunDir,
    rows: dict[Key, Row],
    watching: Watching,
    notes: Sequence[str] = (),
    anew: frozenset[Key] = frozenset(),
) -> Finished:
    owed = made.owed
    run_id = secrets.token_hex(8)
    done = {k: found for k, found in rows.items() if found.failure is None and k not in anew}
    with watching(owed, done, made.config) as watcher, guard(run_id):
        for line in notes:
            watcher.note(line)
        async with model_of(made.config, watcher.note) as model:
            plan = Plan(
                config=made.config,
                samples=made.samples,
                model=Cached(model, run.replies, anew),
                dialect=made.dialect,
                open_box=opener(made.config, made.wall, run_id),
            )
            finished = await execute(plan, run, owed, rows, watcher, anew)
    if not finished.interrupted and finished.rows:
        try:
            await asyncio.to_thread(write_report, run)
        except RunDirError as error:  # the page can be made again; the records are there
            return replace(finished, stopped=finished.stopped or str(error))
    return finished


def _about(made: Ready) -> dict[str, Any]:
    """All of `config.json`."""
    config, samples = made.config, list(made.samples.values())
    source = replayed(config.model)
    image = image_facts(config.image_tag) if made.wall and made.wall.name == "docker" else None
    return {
        "version": VERSION,
        "created": _now(),
        "host": socket.gethostname(),
        "config": config.public().to_json(),
        "owed": len(samples) * config.repeats,
        "image": image,
        "replayed": Replayed(source).facts() if source else None,
        **facts(config, samples, made.dialect.instructions),
        "doctor": doctor.facts(),
        "resumed": [],
    }


def _changed(saved: RunConfig, changes: Mapping[str, Any], force: bool) -> RunConfig:
    old = saved.to_json()
    config = from_json({**old, **changes}, "settings")
    if hidden := [name for name, value in config.headers.items() if value == HIDDEN]:
        hint = f"give --header {hidden[0]}=… again"
        raise ConfigError(f"header {hidden[0]}: its value is not kept in the run directory; {hint}")
    new = config.to_json()
    differing = [name for name in new if new[name] != old[name] and name not in FREE_TO_CHANGE]
    if differing and not force:
        name = differing[0]
        flag = "--" + name.replace("_", "-")
        raise ConfigError(
            f"{flag} {new[name]}: the run was begun with {old[name]}; "
            "leave it out, start a new run, or mix both with --force"
        )
    return config


def _log_resume(
    run: RunDir, about: dict[str, Any], old: RunConfig, new: RunConfig, retry: Sequence[str]
) -> None:
    before, after = old.public().to_json(), new.public().to_json()
    changed = {name: after[name] for name in after if after[name] != before[name]}
    entry = {"at": _now(), "process": os.getpid(), "changed": changed, "retry": list(retry)}
    before_now: object = about.get("resumed")
    resumed = [*(cast("list[Any]", before_now) if isinstance(before_now, list) else []), entry]
    run.write_json("config.json", {**about, "config": after, "resumed": resumed})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
