"""How requests are made: the sampling flags, the patience for retries, the address and the key.

Flags win over the environment, the environment over a `.env` file in the working directory, whose
values are read and never exported. The key is in no `repr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from dotenv import dotenv_values

from agent.address import check_address
from agent.models.errors import AccessRefused

OPENAI_URL = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"
_URLS = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""The SDK's name, and the older one that other evaluation tools read; the first one set wins."""


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """What goes into every request. None leaves a value to the server."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    """Sampling seed; the sample's repeat is added, so that repeats differ."""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Merged over the body, e.g. `{"chat_template_kwargs": {"enable_thinking": false}}`."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    request_timeout: float = 300.0
    """Seconds for one attempt."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long failures are waited out. Seconds."""

    total: float = 600.0
    """From the first attempt to the last; a server that was reached once is given all of it."""
    first_contact: float = 10.0
    """The same for a server that has never answered: it is probably not there."""
    longest_wait: float = 120.0
    """A server that asks for more (a quota that is gone) is not waited for."""
    first_wait: float = 1.0
    """Doubled at each attempt, with jitter, up to half a minute; `Retry-After` is the least."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and a key, and where they came from."""

    base_url: str
    api_key: str = field(repr=False)
    source: str
    """Which flag or variable won, for people: `OPENAI_BASE_URL from .env`."""

    @property
    def shown(self) -> str:
        """The address without a user name and password, and where it came from."""
        parts = urlsplit(self.base_url)
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return f"{url} ({self.source})"


def find_endpoint(
    base_url: str | None, environment: Mapping[str, str], folder: Path = Path()
) -> Endpoint:
    """The endpoint of a run: `--base-url` or the variables, and the key.

    A server of one's own needs no key: `EMPTY` is sent then.

    Raises:
        ConfigError: an address that cannot be one.
        AccessRefused: no key for OpenAI's own servers, or one that cannot be sent.
    """
    settings = {name: (value, "environment") for name, value in environment.items() if value}
    for name, value in dotenv_values(folder / ".env").items():
        if value:
            settings.setdefault(name, (value, ".env"))
    url, source = base_url or "", "--base-url"
    for name in () if base_url else _URLS:
        if not url and name in settings:
            url, source = settings[name][0], f"{name} from {settings[name][1]}"
    others = [name for name in _URLS if name in settings and settings[name][0] != url]
    if url and others:
        source += f"; {', '.join(others)} not used"
    url, source = (url, source) if url else (OPENAI_URL, "the default")
    key, _ = settings.get(_KEY, ("" if url == OPENAI_URL else "EMPTY", ""))
    if not key:
        raise AccessRefused(
            f"expected a key for {OPENAI_URL} in OPENAI_API_KEY (environment or .env), found none; "
            "set it, or name your own server with --base-url"
        )
    url, key = check_address(url, source), key.strip()
    if not (key.isascii() and key.isprintable()):
        raise AccessRefused(
            "expected printable ASCII in OPENAI_API_KEY, found other characters; copy the key again"
        )
    return Endpoint(url, key, source)
