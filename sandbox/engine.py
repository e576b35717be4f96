"""Reaching the Docker engine: which one, whether it answers, and what it says it can limit.

The SDK's and its HTTP library's exceptions become ours here and nowhere else.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import docker
import requests
from docker import APIClient
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from sandbox.address import engine_address, may_not_connect, nobody_listens
from sandbox.errors import BoxLost, SandboxUnavailable

REQUEST_SECONDS = 60
"""How long the engine may take for one answer; a loaded one needs seconds to start a container."""

HINT = "start Docker, or use --sandbox bubblewrap (Linux) or --sandbox process (no isolation)"


def connect() -> APIClient:
    """A client of the engine that DOCKER_HOST, the current Docker context or the default names.

    Raises:
        SandboxUnavailable: no engine answers; one line with the address that was tried.
    """
    address = engine_address()
    silence = nobody_listens(address)
    if silence is not None:
        hint = may_not_connect(address) or HINT
        raise SandboxUnavailable(f"expected a Docker engine at {address}: {silence}; {hint}")
    try:
        api = docker.from_env(timeout=REQUEST_SECONDS).api
        api.ping()
    except (DockerException, requests.RequestException, OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"expected a Docker engine at {address}, found none ({first_line(error)}); {HINT}"
        ) from error
    return api


@contextmanager
def lost_on_error(action: str) -> Generator[None]:
    """Whatever the engine refuses or fails to answer is `BoxLost`; a missing image is said so."""
    try:
        yield
    except ImageNotFound as error:
        raise SandboxUnavailable(missing_image(first_line(error))) from error
    except (DockerException, requests.RequestException, OSError, ValueError) as error:
        raise BoxLost(f"the Docker engine could not {action}: {first_line(error)}") from error


def missing_image(what: str) -> str:
    return f"the sandbox image is missing ({what}); run: pot image build"


def first_line(error: BaseException) -> str:
    """The most telling line of an error: the engine's own words rather than the HTTP status."""
    if isinstance(error, requests.ConnectionError):
        return "it does not answer"  # the library's own words are four exceptions in each other
    text = str(error.explanation) if isinstance(error, APIError) else str(error)
    line = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return line if len(line) <= 300 else line[:299] + "…"


def is_gone(error: APIError) -> bool:
    """True when the engine says that a container is removed or being removed."""
    return isinstance(error, NotFound) or (
        error.status_code == 409 and "already in progress" in str(error.explanation)
    )


def image_exists(api: APIClient, tag: str) -> bool:
    """Whether the engine has the image."""
    try:
        api.inspect_image(tag)
    except NotFound:
        return False
    except (DockerException, requests.RequestException) as error:
        raise SandboxUnavailable(
            f"the Docker engine cannot look up {tag}: {first_line(error)}"
        ) from error
    return True


def enforced_by(info: Mapping[str, Any]) -> dict[str, str]:
    """What the engine of this `docker info` enforces of a box's limits: name → `yes` or why not."""
    options = ",".join(str(option) for option in info.get("SecurityOptions") or ())
    rootless = "rootless" in options
    no_group = "the engine has no such control group" + (
        " (rootless: delegate cpu, memory and pids to the user)" if rootless else ""
    )

    def held(key: str, otherwise: str = no_group) -> str:
        return "yes" if info.get(key) else otherwise

    return {
        "network": "yes",
        "read_only_root": "yes",
        "read_only_inputs": "yes",
        "memory": held("MemoryLimit"),
        "swap": held("SwapLimit", "the kernel does not account swap; memory + swap is not capped"),
        "cpus": held("CpuCfsQuota"),
        "pids": held("PidsLimit"),
        "disk": "yes",
        "user": "yes",
        "capabilities": "yes",
        "seccomp": "yes" if "seccomp" in options else "the engine was built without seccomp",
        "host_files": "yes",
        "host_packages": "yes",
        "cgroup": f"v{info.get('CgroupVersion', '1')}" + (", rootless" if rootless else ""),
    }
