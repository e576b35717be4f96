"""`make demo`: builds a few items, lets the reference programs solve them, shows table and report.

Needs neither Docker nor a key nor a network. Everything is what `pot build` and `pot run` do; only
here may the sandbox fall back to the `process` wall, because the programs that run are ours.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agent.cli import run as pot
from sandbox.errors import SandboxUnavailable
from sandbox.spec import DEFAULT_IMAGE
from sandbox.walls import choose

DATA = Path("demo-data")
TASKS = "circular_shift,swatch_rgb,crop_provenance"
ITEMS = 8
"""A task, two of each tier."""


def wall() -> str:
    """`auto`'s choice, or `process` with a loud word where nothing isolates."""
    try:
        return choose("auto", DEFAULT_IMAGE).name
    except SandboxUnavailable as why:
        say(f"NO ISOLATION HERE: {why}")
        say("The demo's programs are ours, so it goes on with --sandbox process. Never run a")
        say("model's code that way: install Docker or bubblewrap first (see: pot doctor).")
        return "process"


def say(text: str) -> None:
    print(f"demo: {text}", flush=True)  # noqa: T201


def step(*arguments: str) -> None:
    say("pot " + " ".join(arguments))
    code = pot(arguments)
    if code:
        sys.exit(code)


def main() -> None:
    count = str(ITEMS)
    what = ("--tasks", TASKS, "--split", "test", "--count", count)
    step("build", "cwi", *what, "--out", str(DATA), "--force")
    step("run", "cwi", "--data", str(DATA), "--model", "scripted", "--sandbox", wall())


if __name__ == "__main__":
    main()
