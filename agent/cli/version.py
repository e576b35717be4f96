"""`pot version`."""

from __future__ import annotations

from importlib.metadata import version

import typer


def command() -> None:
    """Prints the version of the installed distribution."""
    typer.echo(version("potrunner"))
