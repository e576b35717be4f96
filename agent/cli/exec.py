"""`pot exec`: cells of a file run in one box, one JSON line each; a terminal gets text."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agent.cells import split_cells
from agent.cli.problem import Problem
from agent.cli.streams import MOST_PICTURE, read_bytes, read_text
from agent.signals import run_async
from sandbox.errors import InputRefused, LimitsRefused, SandboxError
from sandbox.outputs import Display, Error, Execution
from sandbox.reaper import guard
from sandbox.session import Box, open_box
from sandbox.spec import DEFAULT_IMAGE, InputFile, Limits, limits_fault


class Sandbox(StrEnum):
    auto = "auto"
    docker = "docker"
    bubblewrap = "bubblewrap"
    process = "process"


def command(
    file: Annotated[str, typer.Argument(help="Python in `# %%` cells; - is stdin.")] = "-",
    image: Annotated[
        list[Path] | None, typer.Option(help="A file for /mnt/data, under its own name; repeats.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines on a terminal too (elsewhere always).")
    ] = False,
    sandbox: Annotated[Sandbox, typer.Option(help="Where the cells run.")] = Sandbox.auto,
    image_tag: Annotated[str, typer.Option(help="The docker wall's image.")] = DEFAULT_IMAGE,
    cell_seconds: Annotated[float, typer.Option(help="Wall time of one cell.")] = 30.0,
    memory_mb: Annotated[int, typer.Option(help="Memory of the box, MiB.")] = 2048,
    cpus: Annotated[float, typer.Option(help="CPUs of the box.")] = 1.0,
) -> None:
    """Run cells in a box, one JSON line each."""
    limits = Limits(memory_mb=memory_mb, cpus=cpus, cell_seconds=cell_seconds)
    fault = limits_fault(limits)
    if fault:
        raise Problem(fault)
    cells = split_cells(read_text(file, "a file of cells"))
    inputs = _inputs(image or [])
    show = print_json if as_json or not sys.stdout.isatty() else print_text
    run_id = f"exec-{secrets.token_hex(6)}"
    with guard(run_id):
        run_async(_run(cells, inputs, limits, sandbox, image_tag, run_id, show))


async def _run(
    cells: list[str],
    inputs: list[InputFile],
    limits: Limits,
    sandbox: Sandbox,
    image_tag: str,
    run_id: str,
    show: Callable[[Execution], None],
) -> None:
    try:
        async with open_box(
            sandbox.value, inputs=inputs, limits=limits, image=image_tag, run_id=run_id
        ) as box:
            for code in cells:
                show(await _cell(box, code))
    except (InputRefused, LimitsRefused) as error:
        raise Problem(str(error), code=2) from None
    except SandboxError as error:
        raise Problem(str(error), code=3) from None


async def _cell(box: Box, code: str) -> Execution:
    """A cell that could not be run still gets its line."""
    try:
        return await box.run(code)
    except SandboxError as error:
        return Execution((), "died", "box_lost", "restarted", 0.0, 0.0, 0.0, note=str(error))


def print_json(execution: Execution) -> None:
    """One line, in ASCII, so that no terminal's encoding gets in the way."""
    typer.echo(json.dumps(execution.to_json()))
    sys.stdout.flush()


def print_text(execution: Execution) -> None:
    """What a person at a terminal wants to see."""
    for output in execution.outputs:
        if isinstance(output, Display) and output.is_picture:
            typer.echo(f"[{output.mime} {output.width}x{output.height}, {len(output.data)} bytes]")
        else:
            typer.echo(output.traceback if isinstance(output, Error) else output.text.rstrip("\n"))
    if not execution.outputs:
        typer.echo("(no output)")
    end = f"-- {execution.status}, {execution.seconds:.2f} s, {execution.peak_mb:.0f} MiB"
    typer.echo(" · ".join(part for part in (end, execution.cause, execution.note) if part))


def _inputs(paths: list[Path]) -> list[InputFile]:
    found: dict[str, InputFile] = {}
    for path in paths:
        if path.name in found:
            raise Problem(f"expected images of different names, found {path.name!r} twice")
        data = read_bytes(path, "an image file", MOST_PICTURE)
        found[path.name] = InputFile(path.name, data)
    return list(found.values())
