"""Runs an ASGI app on a port of this machine, as a `with` block."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Generator

import uvicorn
from starlette.types import ASGIApp

_STOP_SECONDS = 5.0


class _Quiet(uvicorn.Server):
    """Leaves signals to whoever runs the event loop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextlib.asynccontextmanager
async def serve(app: ASGIApp, port: int = 0, host: str = "127.0.0.1") -> AsyncGenerator[str]:
    """Serves until the block ends; gives the base URL, `http://127.0.0.1:<port>/v1`.

    The port is open when the block begins: nobody has to wait for it. Port 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """
    listener = _listen(host, port)
    config = uvicorn.Config(
        app, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1
    )
    server = _Quiet(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://{host}:{listener.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        try:
            await asyncio.wait_for(running, _STOP_SECONDS)
        finally:
            listener.close()


def _listen(host: str, port: int) -> socket.socket:
    # The protocol is named: asyncio sends small packets at once (no 40 ms waits for an
    # acknowledgement) only on sockets that say they are TCP, and the accepted ones inherit it.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    return listener
