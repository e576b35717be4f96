"""`pot report`: writes the page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.settings import problems
from agent.report import write_report
from agent.rundir import RunDir


def command(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to; report.html in the run directory by default.")
    ] = None,
) -> None:
    """Write the report page of a run."""
    with problems():
        typer.echo(str(write_report(RunDir.open(run), out)))
