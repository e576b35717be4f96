"""The docker wall: a hardened container whose PID 1 is the supervisor, on its attach stream.

Order matters: create, attach, start. The container's standard input is open for one client only and
the engine removes the container when it ends, so a runner that dies, even by SIGKILL, closes the
stream, the supervisor sees the end of its input and the box is gone. What that leaves (killed
between create and start, a paused box) is for `sandbox.reaper`.

Protected: network, host files, other boxes, memory, CPU, processes, disk, the kernel's rarer calls.
Not protected: the kernel itself against a bug in the calls that remain (use `--runtime runsc`).
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import asyncio
import re
import secrets
import signal
import socket
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import requests
from docker import APIClient
from docker.errors import APIError, DockerException

from sandbox import hostmemory
from sandbox.closing import to_the_end
from sandbox.engine import connect, enforced_by, is_gone, lost_on_error
from sandbox.errors import BoxLost, SandboxUnavailable
from sandbox.hardening import container_config
from sandbox.home import staged_supervisor
from sandbox.inputs import staged
from sandbox.launch import SUPERVISOR_DIR, SUPERVISOR_MOUNT
from sandbox.muxed import Demultiplexer
from sandbox.spec import BoxSpec, WallName
from sandbox.stream import BoxStream

NAME_TRIES = 5
KILLED = 128 + signal.SIGKILL
FAREWELL_SECONDS = 3.0
"""How long the engine may take to report why a container died."""


@dataclass(frozen=True, slots=True)
class DockerWall:
    """Makes boxes with one engine. Use `DockerWall.connect()`."""

    api: APIClient
    info: dict[str, Any]
    """What the engine says of itself."""
    supervisor: Path = SUPERVISOR_DIR
    name: WallName = "docker"

    @classmethod
    def connect(cls) -> DockerWall:
        """Raises `SandboxUnavailable` when no engine answers."""
        api = connect()
        with lost_on_error("describe itself"):
            return cls(api, api.info())

    @property
    def cpus(self) -> int | None:
        """How many the engine's machine has, which may be a virtual one."""
        return int(self.info.get("NCPU") or 0) or None

    @asynccontextmanager
    async def open(self, spec: BoxSpec) -> AsyncGenerator[DockerConnection]:
        if spec.runtime and spec.runtime not in self.info.get("Runtimes", {}):
            known = ", ".join(sorted(self.info.get("Runtimes", {})))
            raise SandboxUnavailable(f"the engine has no runtime {spec.runtime!r}; it has: {known}")
        with staged(spec.inputs) as inputs:
            container = _Container(self.api)
            stream: BoxStream | None = None
            mounts = {SUPERVISOR_MOUNT: staged_supervisor(self.supervisor), "/mnt/data": inputs}
            config = partial(container_config, self.api, spec, self.info, mounts)
            try:
                await asyncio.to_thread(container.make, spec, config)
                stream = await BoxStream.over_socket(container.take_socket())
                yield DockerConnection(container, stream, enforced_by(self.info))
            finally:
                if stream is not None:
                    stream.close()
                # Shielded: a cancelled runner still removes its box before it goes.
                await to_the_end(asyncio.to_thread(container.discard))


class DockerConnection:
    """The attach stream of one container."""

    data_dir = "/mnt/data"
    work_dir = "/work"

    def __init__(self, container: _Container, stream: BoxStream, enforced: dict[str, str]) -> None:
        self._container = container
        self._stream = stream
        self._enforced = enforced
        self._pieces = Demultiplexer()
        self._opened = time.time()
        self._host_kills = hostmemory.oom_kills()

    @property
    def container_id(self) -> str:
        """The engine's id of the container."""
        return self._container.id or ""

    @property
    def diagnosis(self) -> str:
        """The last that the supervisor wrote to standard error."""
        return self._stream.errors.text

    async def read(self) -> bytes:
        while raw := await self._stream.read():
            output: list[bytes] = []
            for name, data in self._pieces.feed(raw):
                if name == "stdout":
                    output.append(data)
                else:
                    self._stream.errors.add(data)
            if output:
                return b"".join(output)
        return b""

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)

    async def kill(self) -> None:
        self._stream.close()
        await to_the_end(asyncio.to_thread(self._container.discard))

    async def why_lost(self) -> str | None:
        if self._container.discarded:
            return None
        events = await asyncio.to_thread(self._container.farewell, self._opened)
        if _exit_code(events) is None and await asyncio.to_thread(self._container.lives_on):
            return "box_lost"  # it closed its stream: nobody outside did that
        own_limit = "oom" in _actions(events)
        return hostmemory.settle(cause_of_death(events), self._host_kills, own_limit=own_limit)

    def enforced(self) -> dict[str, str]:
        return dict(self._enforced)


class _Container:
    """One container through its life, in threads: the SDK blocks.

    `discard` may come at any time, also while `make` still runs in a thread that nobody awaits any
    more: it waits for the engine's answer to the creation, so that nothing is left when it returns.
    """

    def __init__(self, api: APIClient) -> None:
        self.id: str | None = None
        self._api = api
        self._lock = threading.Lock()
        self.discarded = False
        self._socket: socket.socket | None = None

    def make(self, spec: BoxSpec, config: partial[dict[str, Any]]) -> None:
        """Creates, attaches, starts; then `take_socket` gives the stream."""
        with self._lock, lost_on_error("make a box"):
            self._go_on()
            self.id = identifier = self._create(spec, config())
        with self._lock, lost_on_error("attach to a box"):
            self._go_on()
            self._socket = _attach(self._api, identifier)
        with lost_on_error("start a box"):
            self._api.start(identifier)

    def _go_on(self) -> None:
        if self.discarded:
            raise BoxLost("the box was given up while it was being made")

    def take_socket(self) -> socket.socket:
        """The attached stream, which from now on is the caller's to close."""
        sock, self._socket = self._socket, None
        assert sock is not None, "called once, after make"
        return sock

    def _create(self, spec: BoxSpec, config: dict[str, Any]) -> str:
        run = re.sub(r"[^a-zA-Z0-9]+", "-", spec.run_id).strip("-")[:40] or "run"
        for attempt in range(NAME_TRIES):
            name = f"potrunner-{run}-{secrets.token_hex(6)}"
            try:
                return str(self._api.create_container_from_config(config, name)["Id"])
            except APIError as error:
                # 409: someone else's container has the name. It is theirs; take another name.
                if error.status_code != 409 or attempt == NAME_TRIES - 1:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def discard(self) -> None:
        with self._lock:
            if self.discarded:
                return
            self.discarded = True
            identifier = self.id
        if identifier is not None:
            self._remove(identifier)
        if self._socket is not None:
            self._socket.close()

    def _remove(self, identifier: str) -> None:
        try:
            self._api.remove_container(identifier, force=True, v=True)
        except APIError as error:
            if not is_gone(error):
                self._unpause_and_remove(identifier)
        except requests.RequestException:
            # The engine does not answer. The stream is closed, so the box ends by itself, and what
            # remains carries our label: the next start sweeps it.
            return

    def _unpause_and_remove(self, identifier: str) -> None:
        try:
            self._api.unpause(identifier)
            self._api.remove_container(identifier, force=True, v=True)
        except (APIError, requests.RequestException):
            return  # left to the reaper, as above

    def farewell(self, since: float) -> list[dict[str, Any]]:
        """The engine's events of this container up to its removal; empty when it cannot say."""
        events: list[dict[str, Any]] = []
        try:
            stream = self._api.events(
                since=int(since) - 60,
                until=int(time.time() + FAREWELL_SECONDS) + 1,
                filters={"container": self.id},
                decode=True,
            )
            with closing(stream):
                for event in stream:
                    events.append(event)
                    # A SIGKILL is the memory limit's or somebody's outside; the engine may tell
                    # which only after the removal.
                    told = _exit_code(events) != KILLED or _actions(events) & {"oom", "kill"}
                    if told and "destroy" in _actions(events):
                        break
        except (DockerException, requests.RequestException, OSError, ValueError):
            return []
        return events

    def lives_on(self) -> bool:
        """Whether the engine still sees it run."""
        try:
            return bool(self._api.inspect_container(str(self.id))["State"]["Running"])
        except (DockerException, requests.RequestException, KeyError):
            return False


def cause_of_death(events: list[dict[str, Any]]) -> str | None:
    """The box's own guilt in the engine's events: out of memory, a signal, an exit code. None when
    somebody outside killed it or the engine saw no death."""
    code = _exit_code(events)
    if code is None or "kill" in _actions(events):
        return None
    if code == KILLED:
        # No signal from inside reaches a first process, and the filter guards its limits:
        # without the memory limit it was the host.
        return "out_of_memory" if "oom" in _actions(events) else None
    return f"signal:{code - 128}" if code > 128 else f"exit:{code}"


def _exit_code(events: list[dict[str, Any]]) -> int | None:
    deaths = [event for event in events if event.get("Action") == "die"]
    return int(deaths[-1]["Actor"]["Attributes"].get("exitCode", "0")) if deaths else None


def _actions(events: list[dict[str, Any]]) -> set[str]:
    return {str(event.get("Action", "")) for event in events}


def _attach(api: APIClient, identifier: str) -> socket.socket:
    """The raw stream of a container that has not started: nothing can be buffered beside it."""
    params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    wrapped = api.attach_socket(identifier, params=params)
    raw = getattr(wrapped, "_sock", None)
    # Only a plain socket: an engine behind TLS or ssh is on another machine and would not see the
    # folders that we mount.
    if type(raw) is not socket.socket:
        raise SandboxUnavailable(
            "expected a Docker engine on this machine (a unix socket), found a remote one; unset "
            "DOCKER_HOST or switch the Docker context"
        )
    sock = raw.dup()
    wrapped.close()
    raw.close()
    return sock
