"""The supervisor's view of a kernel, against the kernel's sockets without a kernel."""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from collections.abc import Generator
from pathlib import Path

import pytest
import zmq
from jupyter_client.session import Session

from sandbox.supervisor.handle import Handle
from sandbox.supervisor.reactor import Reactor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor runs on Linux")


@pytest.fixture
def context() -> Generator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context[zmq.Socket[bytes]]() as made:
        yield made


@pytest.mark.parametrize("overlooked", [0, 1, 3])
def test_a_kernel_that_overlooks_a_subscription_is_asked_again(
    context: zmq.Context[zmq.Socket[bytes]], overlooked: int
) -> None:
    reactor = Reactor()
    folder = Path("/tmp") / f"k{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    handle = Handle(reactor, context, f"{folder}/k")
    session = Session(key=handle.key.encode())
    with context.socket(zmq.XPUB) as iopub, handle.far_end as far, contextlib.closing(handle):
        iopub.bind(f"ipc://{handle.address}-2")
        far.send(b"r")
        seen: list[bytes] = []
        until = time.monotonic() + 10
        wake = lambda: reactor.later(0.02, wake)  # noqa: E731 - else the reactor would sleep
        wake()
        while not handle.ready and time.monotonic() < until:
            reactor.turn()
            if not iopub.poll(0):
                continue
            event = iopub.recv()
            assert event in (b"\x01", b"\x00")
            seen += [event] * (event == b"\x01")
            if event == b"\x01" and len(seen) > overlooked:
                session.send(iopub, "iopub_welcome", content={})  # pyright: ignore[reportUnknownMemberType]
        assert handle.ready
        assert len(seen) == overlooked + 1
    for _ in range(30):  # and once it is closed, nobody asks for anything
        reactor.turn()
