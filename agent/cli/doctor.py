"""`pot doctor`: which walls work here, which one `auto` takes, and how to get what is missing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from dotenv import dotenv_values
from rich.table import Table

from agent.cli.console import Console
from agent.signals import run_async
from sandbox.doctor import RUN, Diagnosis, examine
from sandbox.reaper import guard
from sandbox.spec import DEFAULT_IMAGE

LIMITS = {
    "network": "no network",
    "read_only_root": "read-only system",
    "read_only_inputs": "read-only inputs",
    "memory": "memory",
    "swap": "swap",
    "cpus": "CPU time",
    "pids": "processes",
    "disk": "disk",
    "user": "user without rights",
    "capabilities": "no capabilities",
    "seccomp": "system call filter",
    "host_files": "host's files hidden",
    "host_packages": "potrunner's code hidden",
}
"""Names in `enforced()` → what they are to a person, in the order of the table."""
KEYS = ("OPENAI_API_KEY",)


def command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    image_tag: Annotated[str, typer.Option(help="Docker image to look for.")] = DEFAULT_IMAGE,
) -> None:
    """Make a box on each wall, and say what works, what is enforced and what is missing."""
    with guard(RUN) as swept:
        found = run_async(examine(image_tag))
    if as_json:
        keys = {"keys": {name: _key_set(name) for name in KEYS}}
        typer.echo(json.dumps(found.to_json() | keys))
    else:
        _show(found, image_tag)
        if swept.containers:
            typer.echo(f"Removed {swept.containers} boxes that dead runs had left.")
    if found.auto is None:
        raise typer.Exit(3)


def _show(found: Diagnosis, image_tag: str) -> None:
    host = found.host
    lines = [
        ("machine", f"{host['system']}, {host['cpus']} CPUs, {host['memory_mb']} MiB memory"),
        ("python", host["python"]),
        ("disk", f"{host['disk_free_mb'] or 'no'} MiB free where boxes take their inputs from"),
        ("auto", f"{found.auto}" if found.auto else "nothing: no isolating wall works here"),
        ("image", _image_line(found.image, image_tag)),
        *(("wall", _wall_line(wall.name, wall.seconds, wall.works)) for wall in found.walls),
        *(("key", f"{name} is {'set' if _key_set(name) else 'not set'}") for name in KEYS),
    ]
    for name, text in lines:
        typer.echo(f"{name:8} {text}")
    typer.echo("")
    Console(highlight=False).print(_limits_table(found))
    for advice in _advice(found):
        typer.echo(advice)


def _wall_line(name: str, seconds: float, works: bool) -> str:
    return f"{name}: {f'works, first result after {seconds:.2f} s' if works else 'does not work'}"


def _image_line(image: dict[str, Any] | None, tag: str) -> str:
    if image is None:
        return f"no {tag}"
    age = datetime.now(UTC) - datetime.fromisoformat(image["created"][:19]).replace(tzinfo=UTC)
    state = "recipe current" if image["recipe_current"] else "another recipe than this potrunner's"
    digest = image["digest"][:19]
    on = f" on {image['base']}" if image["base"] else ""
    return f"{tag} {digest}{on}, {image['size_mb']} MB, {max(age.days, 0)} days old, {state}"


def _limits_table(found: Diagnosis) -> Table:
    """One row a limit; a number stands for a reason given below the table."""
    working = [wall for wall in found.walls if wall.works]
    table = Table("enforced", *(wall.name for wall in working), box=None)
    reasons = _reasons(found)
    for key, words in LIMITS.items():
        cells = [wall.enforced.get(key, "—") for wall in working]
        table.add_row(words, *(_verdict(cell, reasons) for cell in cells))
    return table


def _verdict(cell: str, reasons: dict[str, int]) -> str:
    if cell in ("yes", "—"):
        return cell
    return f"{'no' if cell.startswith('no') else 'partly'} ({reasons[cell]})"


def _reasons(found: Diagnosis) -> dict[str, int]:
    """Every reason for a limit that is not enforced, numbered."""
    numbers: dict[str, int] = {}
    for key in LIMITS:
        for wall in found.walls:
            reason = wall.enforced.get(key, "yes")
            if reason != "yes":
                numbers.setdefault(reason, len(numbers) + 1)
    return numbers


def _advice(found: Diagnosis) -> Iterator[str]:
    for reason, number in _reasons(found).items():
        yield f"({number}) {reason.removeprefix('no: ')}"
    for wall in found.walls:
        if not wall.works:
            yield f"missing  {wall.name}: {wall.problem}"
    if found.image is not None and not found.image["recipe_current"]:
        yield "advice   the image is of another recipe; run: pot image build"
    for name in KEYS:
        if not _key_set(name):
            yield f"advice   set {name} (environment or .env) to run a model behind an API"


def _key_set(name: str) -> bool:
    return bool(os.environ.get(name) or dotenv_values(".env").get(name))
