"""An address that cannot be one is refused before anything is asked of it."""

from __future__ import annotations

import pytest

from agent.address import check_address
from agent.config import from_json
from agent.errors import ConfigError

BAD = {
    "no scheme": ("notaurl", "does not begin with http"),
    "host and port alone": ("localhost:8000/v1", "does not begin with http"),
    "another scheme": ("ftp://host/v1", "does not begin with http"),
    "one slash": ("http:/host/v1", "does not begin with http"),
    "empty": ("", "empty"),
    "blank": (" \t", "empty"),
    "blank inside": ("http://my host/v1", "blanks"),
    "line break": ("http://host/v1\nx", "blanks"),
    "no-break space": ("http://host\u00a0/v1", "blanks"),
    "port too large": ("http://host:65536/v1", "out of range"),
    "port 0": ("http://host:0/v1", "port 0"),
    "negative port": ("http://host:-1/v1", "ort"),
    "port is a word": ("http://host:http/v1", "ort"),
    "no host": ("http://", "no host"),
    "no host, a path": ("https:///v1", "no host"),
    "no host, a port": ("http://:8000/v1", "no host"),
    "half a bracket": ("http://[::1/v1", "IPv6"),
    "no IPv4": ("http://999.1.1.1/v1", "no name of a host"),
    "empty label": ("http://a..b/v1", "no name of a host"),
    "label too long": (f"http://{'a' * 64}/v1", "no name of a host"),
    "far too long": (f"http://host/{'v' * 70_000}", "too long"),
    "query": ("http://host/v1?key=1", "no ? or #"),
}
GOOD = {
    "http://127.0.0.1:8000/v1": "http://127.0.0.1:8000/v1",
    " https://host.example/v1/ ": "https://host.example/v1",
    "http://[::1]:80/v1": "http://[::1]:80/v1",
    "HTTP://bücher.example/v1": "HTTP://bücher.example/v1",
    "http://my_service": "http://my_service",
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_address(name: str) -> None:
    url, words = BAD[name]
    with pytest.raises(ConfigError) as caught:
        from_json({"benchmark": "cwi", "base_url": url}, "c.toml")
    text = str(caught.value)
    assert text.startswith("c.toml: --base-url: expected an address such as http://127.0.0.1:8000")
    assert words in text
    assert "\n" not in text
    assert len(text) < 400


def test_nul_is_in_no_address() -> None:
    with pytest.raises(ConfigError, match="--base-url: expected text without NUL"):
        from_json({"benchmark": "cwi", "base_url": "http://host\0/v1"}, "c.toml")


@pytest.mark.parametrize("url", GOOD)
def test_what_is_one(url: str) -> None:
    assert check_address(url, "--base-url") == GOOD[url]


def test_a_password_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        check_address("http://me:secret@host:x/v1", "OPENAI_BASE_URL")
    assert "secret" not in str(caught.value)
