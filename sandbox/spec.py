"""What a box is asked to be: limits, input files, identity. Plain values, no behaviour."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

WallName = Literal["docker", "bubblewrap", "process"]
WallChoice = Literal["auto", "docker", "bubblewrap", "process"]

DEFAULT_IMAGE = "potrunner-sandbox"
"""Tag of the image that `pot image build` makes."""


LEAST_MEMORY_MB, MOST_MEMORY_MB = 64, (1 << 24) - 1
"""With less no kernel starts; more is a slip."""
LEAST_CPUS = 0.01
MOST_CELL_SECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Limits:
    """What a box may use. Sizes in MiB, times in seconds."""

    memory_mb: int = 2048
    cpus: float = 1.0
    pids: int = 256
    work_mb: int = 512
    tmp_mb: int = 256
    shm_mb: int = 256
    cell_seconds: float = 30.0
    """Wall time of one cell unless `Box.run` is told otherwise."""
    grace_seconds: float = 2.0
    """Between the interrupt at the deadline and the kill; a box that has not answered that after
    four times as long is ended itself."""
    output_chars: int = 20_000
    """Text kept of one cell (head and tail); the rest stays in a file in the box."""
    pictures: int = 8
    """Pictures kept of one cell."""
    picture_pixels: int = 16_000_000
    """Largest picture that leaves the box; larger ones are shrunk inside, and the note says so."""
    lifetime_seconds: float = 6 * 3600.0


def limits_fault(limits: Limits, host_cpus: int | None = None) -> str | None:
    """What is wrong with limits that a user set, one line; None when nothing is.

    `host_cpus`: what the wall's host has, where that is known already.
    """
    most = host_cpus or 1 << 16
    bounds: tuple[tuple[str, float, float, float, str], ...] = (
        ("--memory-mb", limits.memory_mb, LEAST_MEMORY_MB, MOST_MEMORY_MB, ""),
        ("--cpus", limits.cpus, LEAST_CPUS, most, ", all that this host has" if host_cpus else ""),
        ("--cell-seconds", limits.cell_seconds, 0.01, MOST_CELL_SECONDS, ""),
    )
    for name, value, low, high, why in bounds:
        if not low <= value <= high:  # nan is refused as well
            return f"{name}: expected {low:g} to {high:.8g}{why}, found {value:g}"
    return None


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file as it appears under `/mnt/data`, original bytes."""

    name: str
    """Relative, `/` between parts, e.g. `image_1.png` or `original/image_1.jpg`."""
    data: bytes = field(repr=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """Everything a wall needs to make one box."""

    inputs: tuple[InputFile, ...] = ()
    limits: Limits = field(default_factory=Limits)
    image: str = DEFAULT_IMAGE
    run_id: str = "adhoc"
    """Goes into the container's labels, so that the reaper removes only what is ours."""
    seed: int = 0
    """Reseeds numpy's and random's global generators in every kernel of this box."""
    runtime: str | None = None
    """Docker's `--runtime`, e.g. `runsc`."""
