"""The image's recipe: what the build context holds, its hash, what a record keeps of an image."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli import run
from sandbox.docker import DockerWall
from sandbox.errors import SandboxUnavailable
from sandbox.image import (
    DOCKERFILE,
    PINNED,
    find_image,
    image_facts,
    local_certificates,
    recipe_hash,
    write_context,
)

ROOT = Path(__file__).resolve().parents[2]


def test_the_dockerfile_is_the_one_at_the_top() -> None:
    assert DOCKERFILE.read_bytes() == (ROOT / "Dockerfile.sandbox").read_bytes()


def test_context_holds_the_recipe_and_nothing_else(tmp_path: Path) -> None:
    write_context(tmp_path)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    certificates = {f"certs/{number:02}.crt" for number in range(len(local_certificates()))}
    assert names == {"Dockerfile", "image-requirements.txt"} | certificates
    assert (tmp_path / "Dockerfile").read_bytes() == DOCKERFILE.read_bytes()
    for certificate in certificates:
        assert "-----BEGIN CERTIFICATE-----" in (tmp_path / certificate).read_text()


def test_further_packages_are_held_to_the_pins(tmp_path: Path) -> None:
    further = tmp_path / "mine.txt"
    further.write_text("seaborn\n")
    context = tmp_path / "context"
    context.mkdir()
    write_context(context, further)
    assert (context / "further-requirements.txt").read_text() == "seaborn\n"
    pins = (context / "constraints.txt").read_text().splitlines()
    assert len(pins) == sum(
        "==" in line and line[0].isalnum() for line in PINNED.read_text().splitlines()
    )
    assert all("--hash" not in pin and "\\" not in pin for pin in pins)
    assert any(pin.startswith("numpy==") for pin in pins)
    assert recipe_hash(further).startswith(recipe_hash() + "+")


def test_every_pin_has_a_hash_and_agrees_with_the_lock() -> None:
    """Both walls run the same versions: the box of bubblewrap has the lock file's."""
    pinned = versions(PINNED)
    locked = versions(ROOT / "requirements.lock")
    assert {name: version for name, version in pinned.items() if locked.get(name) != version} == {}
    blocks = PINNED.read_text().replace("\\\n", " ").splitlines()
    assert all("--hash=sha256:" in line for line in blocks if "==" in line)


def versions(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in path.read_text().splitlines():
        name, mark, rest = line.partition("==")
        if mark and line[0].isalnum():
            found.setdefault(name, set()).add(rest.split()[0])
    return found


@pytest.mark.docker
@pytest.mark.usefixtures("docker_wall")
def test_facts_of_the_image() -> None:
    facts = image_facts()
    assert facts["digest"].startswith("sha256:")
    assert facts["packages"]["numpy"] in versions(PINNED)["numpy"]
    assert facts["python"].startswith("3.")
    assert facts == image_facts()  # the second time without a container
    assert find_image("no-such-image:ever") is None
    with pytest.raises(SandboxUnavailable, match="pot image build"):
        image_facts("no-such-image:ever")


@pytest.fixture
def no_leftovers(docker_wall: DockerWall) -> Iterator[None]:
    """Removes the unnamed images that a failed build leaves."""

    def unnamed() -> set[str]:
        return {str(i["Id"]) for i in docker_wall.api.images(filters={"dangling": True})}

    before = unnamed()
    yield
    for identifier in unnamed() - before:
        docker_wall.api.remove_image(identifier)


@pytest.mark.docker
@pytest.mark.usefixtures("no_leftovers")
def test_a_failing_step_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["image", "build", "--base", "scratch", "--image-tag", "pot-t"]) == 3
    error = capfd.readouterr().err
    assert "the image build on scratch failed" in error
    assert "/bin/sh" in error
    assert "Traceback" not in error
    assert find_image("pot-t") is None


def test_bad_flags(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["image", "build", "--requirements", "/nonexistent"]) == 2
    assert "expected a requirements file" in capfd.readouterr().err
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    assert run(["image", "build"]) == 3
    assert capfd.readouterr().err.count("\n") == 1
