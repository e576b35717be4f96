"""What works on this machine: walls, image, limits, and how to get what is missing.

`facts()` is quick and goes into a run's record. `examine()` makes a real box on each wall and runs
a cell in it, since nothing less shows that a wall works.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import time
from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import SandboxError
from sandbox.home import cache_home
from sandbox.session import open_box
from sandbox.spec import DEFAULT_IMAGE, WallName
from sandbox.walls import ISOLATING, Probe, probe

BOX_SECONDS = 120.0
RUN = "doctor"
"""In the labels of its boxes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One wall, tried."""

    name: WallName
    works: bool
    problem: str = ""
    """One line with what to do about it; empty when the wall works."""
    seconds: float = 0.0
    """From nothing to the first cell's result."""
    enforced: dict[str, str] = field(default_factory=dict[str, str])
    """Limit → `yes` or why not."""

    def to_json(self) -> dict[str, Any]:
        return {
            "works": self.works,
            "problem": self.problem,
            "seconds": round(self.seconds, 3),
            "enforced": self.enforced,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything `pot doctor` says."""

    host: dict[str, Any]
    auto: WallName | None
    """The wall that `--sandbox auto` takes; None when no isolating one works."""
    image: dict[str, Any] | None
    """None when there is no engine or no image."""
    walls: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "auto": self.auto,
            "image": self.image,
            "walls": {finding.name: finding.to_json() for finding in self.walls},
        }


def facts(image: str = DEFAULT_IMAGE) -> dict[str, Any]:
    """Host, and for each isolating wall `works` or the problem, without making a box."""
    probes = [probe(name, image) for name in ISOLATING]
    return {
        "host": host(),
        "auto": next((found.name for found in probes if found.wall), None),
        "walls": {found.name: found.problem or "works" for found in probes},
    }


def host() -> dict[str, Any]:
    """The machine and the Python that potrunner runs on."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_mb": pages >> 20,
        "root": os.geteuid() == 0,
    }


async def examine(image: str = DEFAULT_IMAGE) -> Diagnosis:
    """Tries every wall with a real box and one cell."""
    names: tuple[WallName, ...] = (*ISOLATING, "process")
    findings = [await _try(await asyncio.to_thread(probe, name, image), image) for name in names]
    works = {finding.name for finding in findings if finding.works}
    return Diagnosis(
        host={**host(), "disk_free_mb": _disk_free()},
        auto=next((name for name in ISOLATING if name in works), None),
        image=await asyncio.to_thread(_image, image),
        walls=tuple(findings),
    )


def _disk_free() -> int | None:
    """MiB free where boxes take their inputs from; None when there is no such place."""
    try:
        return shutil.disk_usage(cache_home()).free >> 20
    except SandboxError:
        return None


async def _try(found: Probe, image: str) -> Finding:
    if found.wall is None:
        return Finding(found.name, works=False, problem=found.problem)
    start = time.monotonic()
    try:
        async with (
            asyncio.timeout(BOX_SECONDS),
            open_box(found.wall, image=image, run_id=RUN) as box,
        ):
            cell = await box.run("6 * 7")
            seconds = time.monotonic() - start
            enforced = dict(box.facts["enforced"])
    except (SandboxError, TimeoutError) as error:
        problem = str(error) or f"no result within {BOX_SECONDS:.0f} s"
        return Finding(found.name, works=False, problem=problem)
    if cell.text != "42":
        return Finding(found.name, works=False, problem=f"a cell `6 * 7` gave {cell.text!r}")
    return Finding(found.name, works=True, seconds=seconds, enforced=enforced)


def _image(tag: str) -> dict[str, Any] | None:
    from sandbox.image import find_image  # heavy: the docker SDK

    try:
        found = find_image(tag)
    except SandboxError:
        return None
    if found is None:
        return None
    return {
        "tag": found.tag,
        "digest": found.digest,
        "created": found.created,
        "size_mb": round(found.bytes / 1e6),
        "recipe_current": found.current,
        "base": found.base,
    }
