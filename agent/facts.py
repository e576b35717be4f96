"""What a run's `config.json` says beside its settings: enough to know later what was run."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from agent.config import RunConfig
from benchmarks.sample import Sample


def facts(config: RunConfig, samples: Sequence[Sample], instructions: str) -> dict[str, Any]:
    """Versions, commit, package freeze, and hashes of prompt and data. Reads, writes nothing."""
    return {
        "versions": {
            "potrunner": version("potrunner"),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "machine": platform.machine(),
        },
        "commit": commit(),
        "packages": packages(),
        "prompt_sha256": prompt_hash(config, instructions),
        "data_sha256": data_hash(samples),
    }


def commit() -> dict[str, Any] | None:
    """The commit of the checkout that runs, and whether it was changed; None outside of one."""
    root = Path(__file__).resolve().parent.parent
    head = _git(root, "rev-parse", "HEAD", "--show-toplevel")
    if head is None or Path(head.splitlines()[1]) != root:
        return None  # an installed wheel inside somebody else's checkout is not that checkout
    status = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"sha": head.splitlines()[0], "changed": None if status is None else bool(status)}


def packages() -> list[str]:
    """`name==version` of everything installed beside us, sorted."""
    found = {f"{d.metadata['Name']}=={d.version}" for d in distributions() if d.metadata["Name"]}
    return sorted(found, key=str.lower)


def prompt_hash(config: RunConfig, instructions: str) -> str:
    """Changes when anything that frames the questions does."""
    frame = [config.arm, config.system_prompt, config.skills, config.max_turns, instructions]
    return hashlib.sha256(json.dumps(frame).encode()).hexdigest()


def data_hash(samples: Sequence[Sample]) -> str:
    """Over ids, prompts, answers and picture bytes, in order."""
    whole = hashlib.sha256()
    for sample in samples:
        pictures = [[p.name, hashlib.sha256(p.data).hexdigest()] for p in sample.pictures]
        line = [sample.id, sample.task, sample.prompt, sample.target, pictures]
        whole.update(json.dumps(line).encode() + b"\n")
    return whole.hexdigest()


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None  # no git, no checkout: the record says null
    return done.stdout.strip()
