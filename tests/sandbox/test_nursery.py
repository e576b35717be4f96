"""Zygotes that do not answer: replaced in seconds, and whoever waits for a kernel is told."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.supervisor.nursery import ANSWER_SECONDS, Nursery
from sandbox.supervisor.reactor import Reactor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor runs on Linux")


def turn_until(reactor: Reactor, done: Callable[[], object], seconds: float = 40.0) -> None:
    until = time.monotonic() + seconds
    wake = lambda: reactor.later(0.05, wake)  # noqa: E731 - the reactor sleeps until its next timer
    wake()
    while not done():
        assert time.monotonic() < until
        reactor.turn()


@contextmanager
def silent(reactor: Reactor) -> Generator[tuple[Nursery, socket.socket, subprocess.Popen[bytes]]]:
    """A nursery whose light zygote says that it is ready and no more."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with subprocess.Popen(["sleep", "60"]) as sleeper, far:
        nursery = Nursery(reactor, near, sleeper.pid)
        far.send(json.dumps({"pid": sleeper.pid, "ready": True}).encode())
        turn_until(reactor, lambda: nursery.light.ready)
        try:
            yield nursery, far, sleeper
        finally:
            sleeper.kill()
            if nursery.light.pid != sleeper.pid:
                nursery.light.kill()
                os.waitpid(nursery.light.pid, 0)
            nursery.light.close()


def test_one_that_does_not_answer_is_replaced() -> None:
    reactor = Reactor()
    lost: list[float] = []
    with silent(reactor) as (nursery, _, sleeper), Path(os.devnull).open("rb") as null:
        nursery.on_lost = lambda: lost.append(time.monotonic())
        asked = time.monotonic()
        assert not nursery.fork(null.fileno(), {})
        turn_until(reactor, lambda: lost)
        assert lost[0] - asked < 4 * ANSWER_SECONDS
        assert sleeper.wait(10) == -signal.SIGKILL
        turn_until(reactor, lambda: nursery.light.ready)
        assert nursery.light.pid != sleeper.pid


def test_one_that_has_taken_the_request_has_time() -> None:
    reactor = Reactor()
    lost: list[int] = []
    with silent(reactor) as (nursery, far, sleeper), Path(os.devnull).open("rb") as null:
        nursery.on_lost = lambda: lost.append(1)
        nursery.fork(null.fileno(), {})
        far.send(json.dumps({"took": True}).encode())
        until = time.monotonic() + ANSWER_SECONDS + 0.5
        turn_until(reactor, lambda: time.monotonic() > until)
        assert (lost, sleeper.poll()) == ([], None)


def test_one_that_ends_with_a_request_in_hand() -> None:
    reactor = Reactor()
    lost: list[int] = []
    with silent(reactor) as (nursery, far, sleeper), Path(os.devnull).open("rb") as null:
        nursery.on_lost = lambda: lost.append(1)
        nursery.fork(null.fileno(), {})
        far.close()
        turn_until(reactor, lambda: lost, 10)
        turn_until(reactor, lambda: nursery.light.ready)
        assert nursery.light.pid != sleeper.pid
