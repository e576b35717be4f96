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
    listener = socket.create_server((host, port), backlog=512)
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
