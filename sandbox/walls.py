"""Which wall: the one asked for, or the strongest that works here; else what is missing.

`auto` takes docker where an engine answers and has the image, else bubblewrap where namespaces
work, and never the process wall: that one is asked for by name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sandbox.bytecode import ensure_bytecode
from sandbox.errors import BoxLost, LimitsRefused, SandboxUnavailable
from sandbox.spec import DEFAULT_IMAGE, Limits, WallChoice, WallName, limits_fault
from sandbox.wall import Wall

ISOLATING: tuple[WallName, ...] = ("docker", "bubblewrap")
"""In the order in which `auto` prefers them."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found when one wall was tried."""

    name: WallName
    wall: Wall | None
    problem: str
    """One line with what to do about it; empty when the wall works."""


def probe(name: WallName, image: str = DEFAULT_IMAGE) -> Probe:
    """Tries one wall for real, without leaving anything behind."""
    try:
        return Probe(name, _wall(name, image), "")
    except (SandboxUnavailable, BoxLost) as error:
        return Probe(name, None, str(error))


def choose(choice: WallChoice, image: str = DEFAULT_IMAGE) -> Wall:
    """The wall to make boxes with.

    Raises:
        SandboxUnavailable: the asked one does not work here, or none that isolates does.
    """
    if choice != "auto":
        found = probe(choice, image)
        if found.wall is None:
            raise SandboxUnavailable(found.problem)
        return found.wall
    problems: list[str] = []
    for name in ISOLATING:
        found = probe(name, image)
        if found.wall is not None:
            return found.wall
        if name == "docker" and image != DEFAULT_IMAGE:  # asked for by name: not to be passed over
            raise SandboxUnavailable(found.problem)
        problems.append(f"{name}: {found.problem}")
    raise SandboxUnavailable(
        "no isolating sandbox works here. " + " · ".join(problems) + " · or accept no isolation: "
        "--sandbox process"
    )


def check_limits(wall: Wall, limits: Limits) -> None:
    """
    Raises:
        LimitsRefused: no box of this wall can have them; an engine says so only when a box is made.
    """
    cpus = os.cpu_count()
    if wall.name == "docker":
        from sandbox.docker import DockerWall

        cpus = wall.cpus if isinstance(wall, DockerWall) else None
    fault = limits_fault(limits, cpus)
    if fault:
        raise LimitsRefused(fault)


def _wall(name: WallName, image: str) -> Wall:
    # Imported here: the docker SDK and the probe cost more than `pot --help` may take.
    if name == "docker":
        from sandbox.docker import DockerWall
        from sandbox.engine import image_exists, missing_image

        wall = DockerWall.connect()
        if not image_exists(wall.api, image):
            tag = f" --image-tag {image}" if image != DEFAULT_IMAGE else ""
            raise SandboxUnavailable(missing_image(image) + tag)
        return wall
    ensure_bytecode()
    if name == "bubblewrap":
        from sandbox.bwrap_probe import find_bubblewrap

        return find_bubblewrap()
    from sandbox.process import ProcessWall

    return ProcessWall()
