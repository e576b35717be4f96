"""`pot image build`: the image of the docker wall."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.problem import Problem
from sandbox.errors import SandboxUnavailable
from sandbox.spec import DEFAULT_IMAGE

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def image() -> None:
    """The image of the docker wall."""


@app.command()
def build(
    base: Annotated[
        str | None,
        typer.Option(help="Debian-family image to build on; python:3.11-slim-bookworm by default."),
    ] = None,
    requirements: Annotated[
        Path | None, typer.Option(help="Requirements file of packages beside the pinned ones.")
    ] = None,
    image_tag: Annotated[str, typer.Option(help="Tag of the image.")] = DEFAULT_IMAGE,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build even if it is up to date.")
    ] = False,
) -> None:
    """Build the sandbox image, or find it up to date; prints tag, digest and size."""
    # Imported here: `pot image --help` needs no docker SDK.
    from sandbox.image import DEFAULT_BASE, build_image

    if requirements is not None and not requirements.is_file():
        raise Problem(f"expected a requirements file, found nothing at {requirements}")
    try:
        made = build_image(
            typer.echo,
            tag=image_tag,
            base=base or DEFAULT_BASE,
            further=requirements,
            rebuild=rebuild,
        )
    except SandboxUnavailable as error:
        raise Problem(str(error), code=3) from error
    typer.echo(f"{made.tag} {made.digest} {made.bytes / 1e6:.0f} MB")
