"""`pot list`: benchmarks, their tasks, what each task has here; and the models without a server.

The module is not called `list`: as an attribute of its package it would hide the built-in there.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from agent.models.local import LOCAL
from benchmarks.cwi.rules import RULES, describe
from benchmarks.cwi.tasks import TASKS, references


def command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """List benchmarks and tasks (group, scoring rule, generator, reference program) and models."""
    rows = _rows()
    if as_json:
        sys.stdout.write(json.dumps({"cwi": rows, "models": dict(LOCAL)}, indent=1) + "\n")
        return
    for group in dict.fromkeys(row["group"] for row in rows):
        typer.echo(f"cwi · {group}")
        for row in rows:
            if row["group"] == group:
                has = "generator" if row["generator"] else ""
                has += ", reference" if row["reference"] else ""
                typer.echo(f"  {row['task']:<22}{has:<22}{row['rule']}")
    typer.echo("models without a server")
    for name, what in LOCAL.items():
        typer.echo(f"  {name:<22}{what}")


def _rows() -> list[dict[str, Any]]:
    solved = references()
    return [
        {
            "task": task,
            "group": rule.group,
            "rule": describe(task),
            "choice": rule.choice,
            "generator": task in TASKS,
            "reference": task in solved,
        }
        for task, rule in RULES.items()
    ]
