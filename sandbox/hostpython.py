"""This host's Python and its packages, laid out at neutral paths for a box without an image.

`/usr/local/python` is the interpreter, `/usr/local/site/N` each folder of packages, and
`/usr/local/venv` a virtual environment whose site-packages are symbolic links into those: every
package but our own. Reference programs and scorers must not be readable by a model, so `agent`,
`sandbox` and `benchmarks` get no link and are covered where they lie. All of it lies below /usr, as
on any system: code that searches the rest for pictures and tables finds its input files.
"""

from __future__ import annotations

import fnmatch
import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

OURS = (
    "agent",
    "sandbox",
    "benchmarks",
    "potrunner-*",
    "potrunner.egg-*",
    "__editable__*potrunner*",
)
"""Names in a folder of packages that belong to us, in a wheel and in an editable install."""
PHOTOGRAPHS = (
    *(f"skimage/data/*{suffix}" for suffix in (".png", ".jpg", ".gif", ".tif", ".npz", ".npy")),
    "sklearn/datasets/images/*.jpg",
    "matplotlib/mpl-data/sample_data/*.jpg",
)
"""Sample pictures of the packages, from which items are made where nobody brings photographs: the
original beside an item would be its answer. The image leaves them out, too."""
NOT_LINKED = (*OURS, "*.pth", "*.egg-link")
NEEDED = ("numpy", "cv2", "skimage", "scipy", "matplotlib", "PIL", "ipykernel", "zmq")
PACKAGE_FOLDERS = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Layout:
    """Mounts of one box, in order; later ones lie over earlier ones."""

    binds: tuple[tuple[str, str], ...]
    """(host path, box path), read-only."""
    hidden_folders: tuple[str, ...]
    """Box paths that are covered by an empty folder."""
    hidden_files: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    """(target, box path) of symbolic links."""
    files: tuple[tuple[str, str], ...]
    """(text, box path)."""
    library_path: str | None
    """LD_LIBRARY_PATH, where the interpreter needs its own shared library."""


def host_layout() -> Layout:
    """What a box mounts of this interpreter and its packages."""
    base = Path(sys.base_prefix).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sites = _package_folders()
    binds, covered = _interpreter(base, version)
    links = _environment_links(version)
    hidden_folders: list[str] = list(covered)
    hidden_files: list[str] = []
    taken: set[str] = set()
    for number, site in enumerate(sites):
        place = f"/usr/local/site/{number}"
        binds.append((str(site), place))
        for entry in sorted(site.iterdir()):
            if entry.name not in taken and not _matches(entry.name, NOT_LINKED):
                taken.add(entry.name)
                links.append((f"{place}/{entry.name}", _site(version) + f"/{entry.name}"))
        for path in (*_ours_in(site), *_photographs_in(site)):
            shown = [f"{place}/{path.relative_to(site)}"]
            if site.is_relative_to("/usr") and not site.is_relative_to("/usr/local"):
                shown.append(str(path))  # all of /usr is mounted at its own path, too
            (hidden_folders if path.is_dir() else hidden_files).extend(shown)
    return Layout(
        binds=tuple(binds),
        hidden_folders=tuple(hidden_folders),
        hidden_files=tuple(hidden_files),
        links=tuple(links),
        files=(("home = /usr/local/python/bin\n", "/usr/local/venv/pyvenv.cfg"),),
        library_path="/usr/local/python/lib"
        if sysconfig.get_config_var("Py_ENABLE_SHARED")
        else None,
    )


def _site(version: str) -> str:
    return f"/usr/local/venv/lib/{version}/site-packages"


def _environment_links(version: str) -> list[tuple[str, str]]:
    program = f"/usr/local/python/bin/{version}"
    names = ("python", "python3", version)
    return [(program, f"/usr/local/venv/bin/{name}") for name in names]


def _interpreter(base: Path, version: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Binds of the interpreter, and the package folders inside them that must stay covered."""
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    # An interpreter that is not the system's may bring libpython, libssl, libffi … and finds them
    # relative to itself: its folder of libraries comes whole.
    own_libraries = base / standard.relative_to(base).parts[0]
    source = standard if base == Path("/usr") else own_libraries
    place = "/usr/local/python/" + str(source.relative_to(base))
    found = [standard] if source == standard else sorted(source.glob("python3*"))
    covered = [
        f"{place}/{(folder / name).relative_to(source)}"
        for folder in found
        for name in PACKAGE_FOLDERS
        if (folder / name).is_dir()
    ]
    return [(str(program), f"/usr/local/python/bin/{version}"), (str(source), place)], covered


def _package_folders() -> list[Path]:
    """Where this process takes packages from, first match first."""
    folders = [Path(entry) for entry in sys.path if Path(entry).name in PACKAGE_FOLDERS]
    for name in NEEDED:
        spec = find_spec(name)
        if spec is not None and spec.origin:
            folders.append(Path(spec.origin).parent.parent)
    unique = dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir())
    return list(unique)


def _ours_in(site: Path) -> list[Path]:
    top = [entry for entry in site.iterdir() if _matches(entry.name, OURS)]
    cached = site / "__pycache__"
    compiled = [e for e in cached.iterdir() if _matches(e.name, OURS)] if cached.is_dir() else []
    return sorted(top + compiled)


def _photographs_in(site: Path) -> list[Path]:
    return sorted(path for pattern in PHOTOGRAPHS for path in site.glob(pattern))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
