"""Every knob of a run in one frozen object.

A config is made at the edge, from a file and flags (`resolve`), or read back from a run directory
(`from_json`); both validate with messages of one line. Inside it is plain values. Secrets are not
part of it: keys come from the environment.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from agent.address import check_address
from agent.errors import ConfigError
from agent.ranges import flag, range_fault, text_fault
from sandbox.spec import DEFAULT_IMAGE, Limits, WallChoice, limits_fault

Arm = Literal["code", "look", "blind"]
"""`code`: the model sees the pictures and has the sandbox; `look`: pictures, no sandbox;
`blind`: the sandbox with the pictures in it, none sent."""
DialectName = Literal["auto", "tools", "fenced", "tags"]


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The resolved settings of a run: what `config.json` holds and a resume uses again."""

    benchmark: str
    model: str = "scripted"

    data: str | None = None
    """Folder or name of the data; None where the benchmark has a default."""
    split: str = "test"
    tasks: tuple[str, ...] = ()
    """Empty: all."""
    ids: tuple[str, ...] = ()
    """Empty: all."""
    limit: int | None = None
    """Keep the first N samples after `tasks` and `ids`."""
    repeats: int = 1

    base_url: str | None = None
    api: Literal["chat"] = "chat"
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    """Of one reply; None leaves it to the server, within `token_limit`."""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    request_timeout: float = 300.0
    """Seconds for one request."""

    arm: Arm = "code"
    dialect: DialectName = "auto"
    max_turns: int = 5
    """Replies of the model; the last one is asked for the answer, so one fewer outputs are seen."""
    token_limit: int = 40_960
    """Completion tokens with reasoning, summed over a sample."""
    time_limit: float = 600.0
    """Seconds of model thinking and cells, a sample; no queueing, box start or retry sleeps."""
    system_prompt: str | None = None
    """Text that replaces the built-in system prompt's first part."""
    skills: tuple[str, ...] = ()
    """Short texts put into the system prompt."""
    max_images: int = 16
    """Pictures in one request; older ones of the box become placeholders, the prompt's never."""
    max_pixels: int = 2_359_296
    """Pixels of one picture as sent (1536²); larger ones are shrunk and the scale is stated."""
    max_image_bytes: int = 12_000_000
    """Encoded bytes of all pictures in one request."""

    sandbox: WallChoice = "auto"
    image_tag: str = DEFAULT_IMAGE
    runtime: str | None = None
    memory_mb: int = 2048
    cpus: float = 1.0
    cell_seconds: float = 30.0

    workers: int = 4
    """Samples in flight."""
    seed: int | None = None
    """Sent with each request when given; boxes are seeded from it, or from 0."""

    def limits(self) -> Limits:
        """The limits of each box."""
        return Limits(memory_mb=self.memory_mb, cpus=self.cpus, cell_seconds=self.cell_seconds)

    def sample_seed(self, sample_id: str, repeat: int) -> int:
        """The seed of one sample's box: 32 bits that depend on nothing but seed, id and repeat."""
        text = json.dumps([self.seed or 0, sample_id, repeat])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    def public(self) -> RunConfig:
        """As it is written down: values of headers that may be keys are `***`."""
        shown = {k: HIDDEN if _SECRET.search(k) else v for k, v in self.headers.items()}
        return replace(self, headers=shown)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, tuples as lists."""
        return dict(json.loads(json.dumps(asdict(self), allow_nan=False)))


HIDDEN = "***"
_MOST_BYTES = 1 << 20
"""Of a settings file."""
_SECRET = re.compile(r"auth|key|token|cookie|secret|password", re.IGNORECASE)
_NAMES = tuple(f.name for f in fields(RunConfig))


def from_json(values: Mapping[str, Any], source: str = "config") -> RunConfig:
    """A validated config from plain values; `source` is named in the message.

    Raises:
        ConfigError: an unknown name, a wrong type, a value out of range.
    """
    for name in values:
        if name not in _NAMES:
            raise ConfigError(_unknown(name, source))
    if not values.get("benchmark"):
        raise ConfigError(f"{source}: expected a benchmark, found none; see `pot list`")
    if fault := text_fault(values):
        raise ConfigError(f"{source}: {fault}")
    config = _typed(values, source)
    if config.base_url and "@" in config.base_url.partition("://")[2].partition("/")[0]:
        hint = "put it into OPENAI_API_KEY or --header"
        raise ConfigError(f"{source}: --base-url expected without a password; {hint}")
    if config.base_url is not None:
        check_address(config.base_url, f"{source}: --base-url")
    if fault := range_fault(asdict(config)) or limits_fault(config.limits()):
        raise ConfigError(f"{source}: {fault}")
    return config


def read_file(path: Path) -> dict[str, Any]:
    """The settings of a TOML or JSON file, by their names with `-` or `_`.

    Raises:
        ConfigError: the file cannot be read or is not a table.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode("utf-8")
        if len(text) > _MOST_BYTES:
            raise ConfigError(f"--config {path}: expected at most {_MOST_BYTES} bytes, found more")
        loaded = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"--config {path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:  # the decoders', and bytes that are not UTF-8
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigError(f"--config {path}: not {kind}: {error}".replace("\n", " ")) from error
    if not isinstance(loaded, dict):
        raise ConfigError(f"--config {path}: expected a table of settings, found a list or value")
    return {str(key).replace("-", "_"): value for key, value in loaded.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def resolve(flags: Mapping[str, Any], file: Path | None = None) -> RunConfig:
    """Flags that were given (not None) over the file's settings over the defaults.

    Raises:
        ConfigError: as `from_json` and `read_file`.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    from_file = read_file(file) if file else {}
    if file:  # its own faults are named with its own path
        from_json({"benchmark": given.get("benchmark", "cwi"), **from_file}, str(file))
    return from_json({**from_file, **given}, "settings")


def _typed(values: Mapping[str, Any], source: str) -> RunConfig:
    # pydantic costs 0.1 s to import, which `pot --help` need not pay.
    from pydantic import TypeAdapter, ValidationError

    try:
        # As JSON: only there a strict reading takes a list for a tuple, and no "4" or true for 4.
        return TypeAdapter(RunConfig).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        what = first["msg"].replace("Input should be", "expected")
        found = str(first["input"])[:80]
        raise ConfigError(f"{source}: {flag(name)} {what}, found {found!r}") from error


def _unknown(name: str, source: str) -> str:
    near = difflib.get_close_matches(name, _NAMES, 1)
    hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(_NAMES)}"
    return f"{source}: unknown setting {name!r}{hint}"
