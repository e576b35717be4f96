"""Options that `pot run` and `pot ask` share, and how the flags that were given become settings."""

from __future__ import annotations

import errno
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.cli.problem import Problem
from agent.cli.streams import read_text
from agent.config import RunConfig
from agent.errors import AgentError, ConfigError, DiskFull, NothingRan
from agent.models.errors import ModelError
from benchmarks.errors import BenchmarkError, DataUnavailable
from sandbox.errors import InputRefused, LimitsRefused, SandboxError

ModelName = Annotated[
    str | None,
    typer.Option(
        "--model", help="Name at the endpoint, or scripted, replay:RUN, human; see pot list."
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="OpenAI-compatible endpoint; else OPENAI_BASE_URL, from .env too."),
]
Api = Annotated[str | None, typer.Option(help="chat.")]
Arm = Annotated[
    str | None, typer.Option(help="code; look: no sandbox; blind: the picture is not sent.")
]
DialectName = Annotated[str | None, typer.Option(help="auto, tools, fenced or tags.")]
Sandbox = Annotated[
    str | None,
    typer.Option(help="auto, docker, bubblewrap, or process (no isolation: trusted code only)."),
]
ImageTag = Annotated[str | None, typer.Option(help="Docker image; see pot image build.")]
Runtime = Annotated[str | None, typer.Option(help="Docker's --runtime, e.g. runsc.")]
MemoryMb = Annotated[int | None, typer.Option(help="MiB a box. [default: 2048]")]
Cpus = Annotated[float | None, typer.Option(help="CPUs a box. [default: 1]")]
MaxTurns = Annotated[int | None, typer.Option(help="Replies of the model. [default: 5]")]
TokenLimit = Annotated[
    int | None, typer.Option(help="Completion tokens, reasoning too. [default: 40960]")
]
CellSeconds = Annotated[float | None, typer.Option(help="Wall time of a cell. [default: 30]")]
TimeLimit = Annotated[
    float | None, typer.Option(help="Seconds of thinking and cells in all. [default: 600]")
]
Temperature = Annotated[float | None, typer.Option(help="Sent when given.")]
TopP = Annotated[float | None, typer.Option(help="Sent when given.")]
MaxTokens = Annotated[int | None, typer.Option(help="Of one reply; sent when given.")]
ExtraBody = Annotated[str | None, typer.Option(help="JSON object merged into each request.")]
Header = Annotated[
    list[str] | None, typer.Option(help="NAME=VALUE, sent with each request; may repeat.")
]
RequestTimeout = Annotated[float | None, typer.Option(help="Seconds a request. [default: 300]")]
SystemPrompt = Annotated[
    Path | None, typer.Option(help="File whose text replaces the prompt's first part.")
]
Skills = Annotated[
    list[Path] | None, typer.Option(help="File with a short text for the prompt; may repeat.")
]
MaxImages = Annotated[int | None, typer.Option(help="Pictures a request. [default: 16]")]
MaxPixels = Annotated[int | None, typer.Option(help="Pixels a picture. [default: 2359296]")]
Seed = Annotated[int | None, typer.Option(help="Of boxes, and of sampling when given.")]
Config = Annotated[
    Path | None, typer.Option(help="TOML or JSON file of settings; flags win over it.")
]

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
