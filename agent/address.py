"""Whether an endpoint's address can be one, told before anything is asked of it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from agent.errors import ConfigError

EXAMPLE = "http://127.0.0.1:8000/v1"
_BLANK = re.compile(r"[\s\x00-\x20\x7f]")


def check_address(url: str, source: str) -> str:
    """The address without outer blanks and a last slash; `source` is the flag or variable.

    Raises:
        ConfigError: no http(s) address with a host and, if any, a port of 1 to 65535.
    """
    url = url.strip()
    fault = _fault(url)
    if fault:
        raise ConfigError(
            f"{source}: expected an address such as {EXAMPLE}, found {_shown(url)!r} ({fault})"
        )
    return url.rstrip("/")


def _fault(url: str) -> str | None:
    if not url:
        return "empty"
    if _BLANK.search(url):
        return "blanks or control characters in it"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:  # a bracket without its other, a port that is no number or too big
        return str(error)
    if parts.scheme not in ("http", "https") or "://" not in url:
        return "it does not begin with http:// or https://"
    if not host:
        return "no host"
    if port == 0:
        return "port 0"
    if "?" in url or "#" in url:
        return "no ? or # can follow: the API's paths are put at its end"
    return _not_sent(url, host)


def _not_sent(url: str, host: str) -> str | None:
    """Why the HTTP library, or the name's own rules, would not take it."""
    from httpx2 import URL, InvalidURL  # here: 0.1 s that `pot --help` need not pay

    try:
        host.encode("idna")
        URL(url)
    except (UnicodeError, InvalidURL) as error:
        return f"no name of a host: {error}"
    return None


def _shown(url: str) -> str:
    """Without a user name and password, and not too long."""
    head, mark, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{head}{mark}{place.rpartition('@')[2]}{slash}{path}"[:100]
