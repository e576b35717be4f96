# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
"""Data of the Hugging Face Hub by name: `hub:ORG/NAME` or `hub:ORG/NAME@REVISION`.

Files are downloaded once into the Hub client's own cache and used from there, also offline. The key
for gated data is `HF_TOKEN` in the environment and nothing else; `HF_ENDPOINT`, `HF_HOME` and
`HF_HUB_OFFLINE` mean what they mean to every tool of the Hub.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.errors import DataError, DataUnavailable

if TYPE_CHECKING:
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError

PREFIX = "hub:"
_REFERENCE = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", re.ASCII)
_HOME = "https://huggingface.co"


@dataclass(frozen=True, slots=True)
class Reference:
    """A data set at a revision: a branch, a tag or a commit; None is the main branch."""

    repo: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{PREFIX}{self.repo}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True, slots=True)
class Fetched:
    """Files on this disk, laid out as they are in the data set."""

    folder: Path
    pinned: Reference
    """The same at the commit that was fetched: gives the same files for ever."""


@dataclass(frozen=True, slots=True)
class Client:
    """Where and as whom; None is what the environment says."""

    endpoint: str | None = None
    cache: Path | None = None
    token: str | None = None
    offline: bool = False
    seconds: float = 30.0
    """For the Hub to say something; files have the client library's own limit between blocks."""

    @classmethod
    def from_environment(cls) -> Client:
        return cls(os.environ.get("HF_ENDPOINT") or None, token=os.environ.get("HF_TOKEN") or None)

    @property
    def address(self) -> str:
        return (self.endpoint or _HOME).rstrip("/")


def parse(data: str | Path | None) -> Reference | None:
    """The reference that `--data` holds; None for a folder.

    Raises:
        DataError: it begins as one and is none.
    """
    text = str(data or "")
    if not text.startswith(PREFIX):
        return None
    found = _REFERENCE.fullmatch(text.removeprefix(PREFIX))
    if found is None:
        raise DataError(f"expected --data hub:ORG/NAME or hub:ORG/NAME@REVISION, found {text!r}")
    return Reference(found[1], found[2])


def fetch(reference: Reference, patterns: Sequence[str], client: Client | None = None) -> Fetched:
    """The files that match; what is in the cache already is not downloaded again.

    Raises:
        DataError: no such data set, revision or file. DataUnavailable: gated, not reached, offline,
            the disk is full.
    """
    from huggingface_hub.utils import disable_progress_bars  # here: others should not pay for it

    client = client or Client.from_environment()
    if not sys.stderr.isatty():
        disable_progress_bars()
    with _named(reference, client):
        folder = _snapshot(reference, patterns, client)
        pinned = Reference(reference.repo, folder.name)
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            raise DataError(
                f"{reference}: expected files such as {patterns[0]}, found "
                f"{_there(pinned, client)}; give the tasks and the split that it has"
            )
    return Fetched(folder, pinned)


def _snapshot(reference: Reference, patterns: Sequence[str], client: Client) -> Path:
    from huggingface_hub import snapshot_download

    with _deadline(client.seconds):
        folder = snapshot_download(
            reference.repo,
            repo_type="dataset",
            revision=reference.revision,
            allow_patterns=list(patterns),
            endpoint=client.endpoint,
            cache_dir=client.cache,
            token=client.token or False,  # False: not one that some other tool has stored
            local_files_only=client.offline,
            etag_timeout=client.seconds,
        )
    return Path(folder)


@contextmanager
def _deadline(seconds: float) -> Generator[None]:
    """Requests to which the library gives no time limit, most of its own, have this one."""
    from huggingface_hub.utils import get_session

    def limit(request: httpx2.Request) -> None:
        given: dict[str, float | None] = request.extensions.get("timeout", {})
        steps = ("connect", "read", "write", "pool")
        request.extensions["timeout"] = {step: given.get(step) or seconds for step in steps}

    session = get_session()
    before = session.event_hooks
    session.event_hooks = {**before, "request": [*before["request"], limit]}
    try:
        yield
    finally:
        session.event_hooks = before


def _there(pinned: Reference, client: Client) -> str:
    """What the data set holds, for people."""
    from huggingface_hub import HfApi

    api = HfApi(client.endpoint, client.token or False)
    names = api.list_repo_files(pinned.repo, repo_type="dataset", revision=pinned.revision)
    return f"{', '.join(names[:6])}{', …' if len(names) > 6 else ''}" if names else "no file"


@contextmanager
def _named(reference: Reference, client: Client) -> Generator[None]:
    """Turns what the library raises into one line: whose fault it is, and what to do."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        yield
    except DataError:
        raise
    except LocalEntryNotFoundError as error:
        cause = error.__cause__
        if isinstance(cause, HfHubHTTPError):
            raise _answered(reference, client, cause) from error
        raise DataUnavailable(_not_kept(reference, client, cause)) from error
    except HfHubHTTPError as error:
        raise _answered(reference, client, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        text = f"{reference}: expected a Hub at {client.address}, found something else"
        raise DataUnavailable(f"{text}; check HF_ENDPOINT and the proxy") from error
    except (httpx2.HTTPError, OSError) as error:
        text = f"{reference}: the download broke off ({_one_line(error)}); run it again, it goes on"
        raise DataUnavailable(text) from error


def _answered(reference: Reference, client: Client, error: HfHubHTTPError) -> DataError:
    """What an answer that is no file means."""
    from huggingface_hub.errors import (
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, GatedRepoError):
        return DataUnavailable(_gated(reference, client))
    if isinstance(error, RevisionNotFoundError):
        return DataError(f"{reference}: expected a branch, tag or commit, found no such revision")
    if isinstance(error, RepositoryNotFoundError):
        key = "HF_TOKEN may not see it" if client.token else "set HF_TOKEN if it is private"
        text = f"{reference}: no such data set at {client.address}; check its name, or {key}"
        return DataError(text)
    return DataUnavailable(_refused(reference, client, error.response.status_code))


def _gated(reference: Reference, client: Client) -> str:
    key = "the account of HF_TOKEN has not" if client.token else "HF_TOKEN is not set"
    where = f"{client.address}/datasets/{reference.repo}"
    return f"{reference} is gated and {key}: accept the terms at {where}, set HF_TOKEN to your key"


def _refused(reference: Reference, client: Client, status: int) -> str:
    if status == 401:
        return f"{reference}: {client.address} does not know the key in HF_TOKEN; copy it again"
    if status == 403:
        return f"{reference}: the key in HF_TOKEN may not read it; allow that, or use another"
    return f"{reference}: {client.address} answers {status}; try again later"


def _not_kept(reference: Reference, client: Client, cause: BaseException | None) -> str:
    from huggingface_hub.errors import OfflineModeIsEnabled

    what, todo = f"{client.address} cannot be reached", "try again later"
    if cause is None or isinstance(cause, OfflineModeIsEnabled):
        what, todo = "HF_HUB_OFFLINE is set", "unset it"
    else:
        what += f" ({_one_line(cause)})"
    return (
        f"{reference}: {what} and the cache does not have all of these files; {todo}, "
        "or name a folder that has them with --data DIR"
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
