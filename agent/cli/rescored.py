"""What `pot score RUN` prints: which records changed, and the table."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.text import Text

from agent.cli.console import Console
from agent.cli.settings import problems
from agent.report import write_report
from agent.rescore import rescore
from agent.table import table, why_lost


def show(path: Path) -> None:
    """Scores a run again and says what came of it; exit code 1 when something owed has no score."""
    with problems():
        done = rescore(path)
        write_report(done.run)
    console = Console(highlight=False)
    for line in done.changed:
        console.print(Text(line), soft_wrap=True)
    console.print(table(done.owed, done.rows))
    for line in why_lost(done.owed, done.rows):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"{len(done.changed)} of {len(done.rows)} records changed."))
    raise typer.Exit(0 if done.summary["scored"] == done.summary["owed"] else 1)
