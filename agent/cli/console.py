"""The console that tables and colours go through."""

from __future__ import annotations

import rich.console


class Console(rich.console.Console):
    """Rich's, but a reader that went away is an error like any other, with one exit code."""

    def on_broken_pipe(self) -> None:
        raise
