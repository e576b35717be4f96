"""The seam between session and walls: a box is what gives a duplex byte stream to a supervisor.

A wall makes the box, starts the supervisor in it and hands back a `Connection`. It knows nothing of
frames; the session knows nothing of containers.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from sandbox.spec import BoxSpec, WallName


class Connection(Protocol):
    """The stream to one supervisor, and the few things only the wall can know or do."""

    data_dir: str
    """Where the input files are, as seen in the box: `/mnt/data`, except on the process wall."""
    work_dir: str
    """The kernel's writable working directory, as seen in the box: `/work`, except on the process
    wall."""

    async def read(self) -> bytes:
        """The next bytes from the supervisor; empty when the stream has ended."""
        ...

    async def write(self, data: bytes) -> None:
        """Sends bytes; raises `BoxLost` when the stream has ended."""
        ...

    async def kill(self) -> None:
        """Ends the box at once, whatever state it is in. Idempotent."""
        ...

    async def why_lost(self) -> str | None:
        """After the stream ended: a cause that the box itself is guilty of (`out_of_memory`,
        `signal:N`, `exit:N`, `too_many_processes`, `box_lost` when it closed its stream and lives
        on), or None when the fault lies outside the box (daemon gone, container removed by someone
        else). Asked once, may wait a little."""
        ...

    def enforced(self) -> dict[str, str]:
        """What this wall really enforces on this host, name → `yes` or the reason why not."""
        ...


class Wall(Protocol):
    """One way to make boxes."""

    @property
    def name(self) -> WallName: ...

    def open(self, spec: BoxSpec) -> AbstractAsyncContextManager[Connection]:
        """Makes a box whose supervisor is about to speak; removes it on exit, whatever happened.

        Raises:
            SandboxUnavailable: the wall cannot work here; the text says what to install.
            BoxLost: the host failed while the box was being made.
        """
        ...
