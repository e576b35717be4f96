"""The host's hello: parsed, its input files verified, answered with what this box is."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import counters
from .aftermath import CellLimits

VERSION = 1
MAX_LIFETIME = 30 * 24 * 3600.0
"""Seconds; more is none of a box's life."""
_PACKAGES = frozenset(
    [
        "numpy",
        "scipy",
        "opencv_python_headless",
        "opencv_python",
        "scikit_image",
        "pillow",
        "matplotlib",
        "pandas",
        "ipython",
        "ipykernel",
        "jupyter_client",
        "pyzmq",
        "scikit_learn",
        "sympy",
    ]
)


class Refused(Exception):
    """The box is not what the host thinks it is; the text is one line."""


@dataclass(frozen=True, slots=True)
class Hello:
    work_dir: str
    data_dir: str
    seed: int
    threads: int
    lifetime_seconds: float
    limits: CellLimits


def parse(header: Mapping[str, Any]) -> Hello:
    """
    Raises:
        Refused: another version speaks, or an input file is not the one that was announced.
    """
    if header.get("type") != "hello" or header.get("version") != VERSION:
        said = header.get("version")
        shown = said if type(said) is int and abs(said) < 1000 else type(said).__name__
        raise Refused(f"expected hello version {VERSION}, got {shown}")
    try:
        return _hello(header)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise Refused(f"the hello has another shape: {type(error).__name__}") from None


def _hello(header: Mapping[str, Any]) -> Hello:
    limits = header["limits"]
    _verify(header["data_dir"], header["inputs"])
    return Hello(
        work_dir=_text(header["work_dir"]),
        data_dir=_text(header["data_dir"]),
        seed=_count(header["seed"]),
        threads=max(1, int(limits["cpus"])),
        lifetime_seconds=_seconds(limits["lifetime_seconds"]),
        limits=CellLimits(
            chars=_count(limits["output_chars"]),
            pictures=_count(limits["pictures"]),
            pixels=_count(limits["picture_pixels"]),
            memory_mb=_count(limits["memory_mb"]),
            pids=_count(limits["pids"]),
        ),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError("expected text")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("expected a count")
    return value


def _seconds(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise TypeError("expected seconds")
    return min(float(value), MAX_LIFETIME)


def ready() -> dict[str, Any]:
    """What the host is told: versions and the limits that the box can see."""
    return {
        "type": "ready",
        "version": VERSION,
        "python": platform.python_version(),
        "packages": packages(),
        "facts": {
            "uid": os.getuid(),
            "pid": os.getpid(),
            "files_bytes": resource.getrlimit(resource.RLIMIT_FSIZE)[0],
            **counters.limits(),
        },
    }


def packages() -> dict[str, str]:
    """Versions of the main libraries, by the names of their folders: importing would take long."""
    found: dict[str, str] = {}
    for entry in sys.path:
        try:
            names = os.listdir(entry)  # noqa: PTH208  (names only, thousands of them)
        except OSError:
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            package, _, version = name.rpartition(".")[0].partition("-")
            if package.lower() in _PACKAGES:
                found.setdefault(package.lower().replace("_", "-"), version)
    return dict(sorted(found.items()))


def _verify(data_dir: str, inputs: list[dict[str, str]]) -> None:
    for entry in inputs:
        path = Path(data_dir, entry["name"])
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise Refused(f"input {path}: expected a readable file, found {error}") from None
        if digest != entry["sha256"]:
            raise Refused(f"input {path}: expected sha256 {entry['sha256']}, found {digest}")
