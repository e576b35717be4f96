"""The image of the docker wall: building it from a recipe, and what an image on this engine is.

The recipe is `Dockerfile.sandbox` and the pinned packages; its hash rides on the image as a label,
so that a run's record and `pot doctor` can say whether image and potrunner belong together.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from docker import APIClient
from docker.errors import DockerException, ImageNotFound

from sandbox.engine import connect, first_line, missing_image
from sandbox.errors import SandboxUnavailable
from sandbox.home import cache_home, remember
from sandbox.identity import owner_labels, this_process
from sandbox.spec import DEFAULT_IMAGE

FOLDER = Path(__file__).parent
DOCKERFILE = FOLDER / "Dockerfile.sandbox"
"""In a checkout a link to the file of that name at the top; in a wheel a copy of it."""
PINNED = FOLDER / "image-requirements.txt"
DEFAULT_BASE = "python:3.11-slim-bookworm"
RECIPE_LABEL, BASE_LABEL = "potrunner.recipe", "potrunner.base"
STAGE_LABEL = "potrunner.stage=packages"
CERTIFICATES = ("/usr/local/share/ca-certificates", "/etc/pki/ca-trust/source/anchors")
"""Where Debian's and Fedora's families keep authorities that an administrator added."""
PASSED_ON = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
BUILD_SECONDS = 3600
"""Between two signs of life of a build."""

LIST_PACKAGES = (
    "import importlib.metadata as m, json, platform; print(json.dumps({'python': "
    "platform.python_version(), 'packages': {d.metadata['Name']: d.version for d in "
    "m.distributions()}}))"
)


@dataclass(frozen=True, slots=True)
class Image:
    """An image on the engine."""

    tag: str
    digest: str
    """`sha256:…` of its configuration: the same for the same content."""
    bytes: int
    created: str
    """ISO 8601, UTC."""
    recipe: str
    """Hash of the recipe it was built from; empty when it is not ours."""
    base: str

    @property
    def current(self) -> bool:
        """Whether this potrunner would build it the same way, further packages aside."""
        return self.recipe.partition("+")[0] == recipe_hash()


def recipe_hash(further: Path | None = None) -> str:
    """Hash over Dockerfile and pinned packages; further packages add theirs after a `+`."""
    digest = hashlib.sha256(DOCKERFILE.read_bytes() + b"\0" + PINNED.read_bytes()).hexdigest()[:12]
    if further is None:
        return digest
    return f"{digest}+{hashlib.sha256(further.read_bytes()).hexdigest()[:8]}"


def build_image(
    say: Callable[[str], None],
    *,
    tag: str = DEFAULT_IMAGE,
    base: str = DEFAULT_BASE,
    further: Path | None = None,
    rebuild: bool = False,
) -> Image:
    """Builds the image, or finds it built already from the same recipe and base.

    `further` is a requirements file of packages beside the pinned ones. `say` gets progress lines.

    Raises:
        SandboxUnavailable: no engine, or a build step failed; the text holds its last words.
    """
    api = connect()
    recipe = recipe_hash(further)
    if not rebuild:
        found = find_image(tag, api)
        if found is not None and (found.recipe, found.base) == (recipe, base):
            say(f"{tag} is up to date; --rebuild builds it again")
            return found
    with tempfile.TemporaryDirectory(prefix="potrunner-image-") as folder:
        write_context(Path(folder), further)
        _build(api, Path(folder), tag, base, {RECIPE_LABEL: recipe, BASE_LABEL: base}, say)
    _forget_leftovers(api)
    image = find_image(tag, api)
    if image is None:
        raise SandboxUnavailable(f"the build ended well, yet the engine has no {tag}; try again")
    return image


def write_context(folder: Path, further: Path | None = None) -> None:
    """Fills a folder with all that a build needs: nothing else of the host can reach the image."""
    (folder / "Dockerfile").write_bytes(DOCKERFILE.read_bytes())
    pinned = PINNED.read_text(encoding="utf-8")
    (folder / "image-requirements.txt").write_text(pinned, encoding="utf-8")
    if further is not None:
        (folder / "further-requirements.txt").write_bytes(further.read_bytes())
        # The pins without their hashes: pip would demand hashes of the further packages as well.
        pins = re.findall(r"^[\w.-]+==[^\\\n]+", pinned, flags=re.MULTILINE)
        (folder / "constraints.txt").write_text("\n".join(pins) + "\n", encoding="utf-8")
    certificates = local_certificates()
    if certificates:
        (folder / "certs").mkdir()
    for number, text in enumerate(certificates):
        (folder / "certs" / f"{number:02}.crt").write_text(text)


def local_certificates() -> list[str]:
    """Authorities that this host trusts beyond the usual ones (a company's proxy, say)."""
    found: dict[str, None] = {}
    for place in CERTIFICATES:
        for path in sorted(Path(place).rglob("*")):
            if path.suffix in (".crt", ".pem") and path.is_file():
                text = path.read_text(encoding="ascii", errors="ignore")
                if "-----BEGIN CERTIFICATE-----" in text:
                    found[text] = None
    return list(found)


def _build(
    api: APIClient,
    folder: Path,
    tag: str,
    base: str,
    labels: dict[str, str],
    say: Callable[[str], None],
) -> None:
    arguments = {name: value for name in PASSED_ON if (value := os.environ.get(name))}
    last: list[str] = []
    try:
        for event in api.build(
            path=str(folder),
            tag=tag,
            buildargs={**arguments, "BASE": base},
            labels=labels,
            rm=True,
            forcerm=True,
            nocache=True,
            decode=True,
            timeout=BUILD_SECONDS,
        ):
            text = str(event.get("error") or event.get("stream") or event.get("status") or "")
            lines = [line for part in text.splitlines() if (line := _plain(part))]
            last = [*last, *lines][-12:]
            if "error" in event:
                said = "\n  ".join(last)
                hint = _base_hint(api, base)
                raise SandboxUnavailable(f"the image build on {base} failed:{hint}\n  {said}")
            for line in lines:
                say(line)
    except (DockerException, requests.RequestException, OSError) as error:
        raise SandboxUnavailable(
            f"the image build on {base} failed: {first_line(error)}"
        ) from error


def _base_hint(api: APIClient, base: str) -> str:
    """What to do where the base image is what was missing."""
    try:
        api.inspect_image(base)
    except ImageNotFound:
        return (
            f" the engine has no {base} and could not fetch it; docker pull or docker load it "
            "first, or use --base with a Debian-family image that `docker images` lists. It said:"
        )
    except (DockerException, requests.RequestException):
        return ""
    return ""


def _plain(line: str) -> str:
    """A line as a log would have it: without colours and progress bars drawn over each other."""
    return re.sub(r"\x1b\[[0-9;]*m", "", line.rpartition("\r")[2]).strip()


def _forget_leftovers(api: APIClient) -> None:
    """Removes the build stage with pip and certificates, and what lost its tag to a newer image:
    a gigabyte each that nothing refers to."""
    try:
        for label in (STAGE_LABEL, RECIPE_LABEL):
            api.prune_images(filters={"dangling": True, "label": label})
    except (DockerException, requests.RequestException):
        return  # disk space, no more


def find_image(tag: str, api: APIClient | None = None) -> Image | None:
    """The image of this tag; None when the engine does not have it."""
    try:
        found: dict[str, Any] = (api or connect()).inspect_image(tag)
    except ImageNotFound:
        return None
    except (DockerException, requests.RequestException) as error:
        raise SandboxUnavailable(f"the engine cannot show {tag}: {first_line(error)}") from error
    labels: dict[str, str] = (found.get("Config") or {}).get("Labels") or {}
    return Image(
        tag=tag,
        digest=str(found["Id"]),
        bytes=int(found["Size"]),
        created=str(found["Created"]),
        recipe=labels.get(RECIPE_LABEL, ""),
        base=labels.get(BASE_LABEL, ""),
    )


def image_facts(tag: str = DEFAULT_IMAGE) -> dict[str, Any]:
    """What a run's record keeps of its image: tag, digest, recipe hash, Python, every package.

    Raises:
        SandboxUnavailable: no engine, no such image, or it cannot list its packages.
    """
    api = connect()
    image = find_image(tag, api)
    if image is None:
        raise SandboxUnavailable(missing_image(tag))
    return {
        "tag": tag,
        "digest": image.digest,
        "created": image.created,
        "recipe": image.recipe,
        "recipe_current": image.current,
        "base": image.base,
        **_contents(api, image.digest),
    }


def _contents(api: APIClient, digest: str) -> dict[str, Any]:
    """Python's version and the packages. Asked of a container once an image, then remembered."""
    memo = cache_home() / "images" / f"{digest.removeprefix('sha256:')}.json"
    if memo.is_file():
        known: dict[str, Any] = json.loads(memo.read_text(encoding="utf-8"))
        return known
    try:
        contents: dict[str, Any] = json.loads(_output(api, digest, LIST_PACKAGES))
    except (DockerException, requests.RequestException, OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"the image cannot list its packages ({first_line(error)}); it needs python3 on PATH"
        ) from error
    remember(memo, json.dumps(contents))
    return contents


def _output(api: APIClient, digest: str, code: str) -> bytes:
    """What some Python prints in a container that the engine removes when it ends: nothing of it
    stays, whenever this process is killed (created only, it is the sweep's)."""
    made = api.create_container(
        digest,
        ["python3", "-c", code],
        entrypoint=[],
        user="1000:1000",
        labels=owner_labels(this_process(), "image-facts"),
        host_config=api.create_host_config(
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true"],
            mem_limit="512m",
            auto_remove=True,
        ),
    )
    # Attached before it starts: nothing can be missed.
    pieces = api.attach(made["Id"], stdout=True, stderr=False, stream=True)
    api.start(made["Id"])
    return b"".join(pieces)
