"""Which address and key are used, and that a key is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import ConfigError
from agent.models.errors import AccessRefused
from agent.models.options import find_endpoint


@pytest.mark.parametrize(
    ("flag", "environment", "dotenv", "url", "source"),
    [
        ("http://a/v1/", {"OPENAI_BASE_URL": "http://b"}, "", "http://a/v1", "--base-url"),
        (None, {"OPENAI_BASE_URL": "http://b"}, "", "http://b", "OPENAI_BASE_URL from environment"),
        (None, {"OPENAI_API_BASE": "http://c"}, "", "http://c", "OPENAI_API_BASE from environment"),
        (
            None,
            {"OPENAI_BASE_URL": "http://b", "OPENAI_API_BASE": "http://c"},
            "",
            "http://b",
            "OPENAI_BASE_URL from environment; OPENAI_API_BASE not used",
        ),
        (None, {}, "OPENAI_BASE_URL=http://d\n", "http://d", "OPENAI_BASE_URL from .env"),
        (
            None,
            {"OPENAI_BASE_URL": "http://b"},
            "OPENAI_BASE_URL=http://d\n",
            "http://b",
            "OPENAI_BASE_URL from environment",
        ),
        (None, {"OPENAI_BASE_URL": ""}, "OPENAI_API_BASE=http://e", "http://e", ".env"),
    ],
)
def test_which_address_wins(
    tmp_path: Path,
    flag: str | None,
    environment: dict[str, str],
    dotenv: str,
    url: str,
    source: str,
) -> None:
    (tmp_path / ".env").write_text(dotenv)
    endpoint = find_endpoint(flag, environment, tmp_path)
    assert endpoint.base_url == url
    assert source in endpoint.source
    assert endpoint.api_key == "EMPTY"


def test_the_key_comes_from_the_environment_before_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY='sk-of-the-file'\n")
    assert find_endpoint(None, {}, tmp_path).api_key == "sk-of-the-file"
    endpoint = find_endpoint(None, {"OPENAI_API_KEY": "sk-of-the-shell"}, tmp_path)
    assert endpoint.api_key == "sk-of-the-shell"
    assert "sk-" not in repr(endpoint)
    assert endpoint.source == "the default"


@pytest.mark.parametrize(
    ("flag", "environment", "words"),
    [
        (None, {}, "OPENAI_API_KEY"),
        ("http://a", {"OPENAI_API_KEY": "sk-\u2026copied"}, "printable ASCII"),
        ("http://a", {"OPENAI_API_KEY": "sk-one\nsk-two"}, "printable ASCII"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    tmp_path: Path, flag: str | None, environment: dict[str, str], words: str
) -> None:
    with pytest.raises(AccessRefused) as caught:
        find_endpoint(flag, environment, tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "copied" not in str(caught.value)


def test_an_address_that_cannot_be_one_names_where_it_came_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"OPENAI_BASE_URL from environment: .*localhost:8000/v1"):
        find_endpoint(None, {"OPENAI_BASE_URL": "localhost:8000/v1"}, tmp_path)


def test_a_password_in_the_address_is_not_shown(tmp_path: Path) -> None:
    endpoint = find_endpoint("https://me:secret@host:1/v1", {}, tmp_path)
    assert endpoint.shown == "https://host:1/v1 (--base-url)"
