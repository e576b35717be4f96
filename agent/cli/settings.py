"""How the flags that were given become settings, and what goes wrong a line and an exit code."""

from __future__ import annotations

import errno
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from agent.cli.problem import Problem
from agent.cli.streams import read_text
from agent.config import RunConfig
from agent.errors import AgentError, ConfigError, DiskFull, NothingRan
from agent.models.errors import ModelError
from benchmarks.errors import BenchmarkError, DataUnavailable
from sandbox.errors import InputRefused, LimitsRefused, SandboxError

MOST_PROMPT = 4 << 20
"""Bytes of a file whose text goes into every request."""
_NAMES = frozenset(field.name for field in fields(RunConfig))


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among a command's parameters that were given, read into their own types."""
    flags = {k: v for k, v in parameters.items() if k in _NAMES and v is not None}
    for name in ("tasks", "ids"):
        if name in flags:
            flags[name] = words(str(flags[name]), f"--{name}")
    if "extra_body" in flags:
        flags["extra_body"] = _json_object(str(flags["extra_body"]))
    if parameters.get("header"):
        flags["headers"] = dict(_header(text) for text in parameters["header"])
    if "system_prompt" in flags:
        flags["system_prompt"] = _text("--system-prompt", flags["system_prompt"])
    if "skills" in flags:
        flags["skills"] = [_text("--skills", path) for path in flags["skills"]]
    return flags


def words(text: str, flag: str) -> list[str]:
    """What stands between the commas. Nothing at all is a slip: it would mean everything.

    Raises:
        ConfigError: no word.
    """
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise ConfigError(f"{flag}: expected names separated by commas, found {text[:40]!r}")
    return found


@contextmanager
def problems() -> Generator[None]:
    """What a user can mend as one line and an exit code: 2 bad input, 3 nothing could run."""
    try:
        yield
    except (NothingRan, DiskFull, ModelError, DataUnavailable) as error:
        raise Problem(str(error), 3) from error
    except (AgentError, BenchmarkError, InputRefused, LimitsRefused) as error:
        raise Problem(str(error), 2) from error
    except SandboxError as error:
        raise Problem(str(error), 3) from error
    except PermissionError as error:
        raise Problem(f"{error.filename}: no permission; check its owner and mode") from error
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.ELOOP, errno.EROFS):
            raise
        name = str(error.filename)
        shown = name if len(name) <= 100 else f"{name[:60]}…{name[-30:]}"
        raise Problem(f"{shown}: {error.strerror}; name another place") from error


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--extra-body: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"--extra-body: expected a JSON object, found {text[:60]!r}")
    return {str(key): value for key, value in found.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _header(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise ConfigError(f"--header: expected NAME=VALUE, found {text.partition('=')[0][:40]!r}")
    return name.strip(), value.strip()


def _text(flag: str, path: Path) -> str:
    return read_text(path, f"{flag} with a text", MOST_PROMPT).strip()
