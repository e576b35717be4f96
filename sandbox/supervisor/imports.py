"""Import hooks of a kernel: libraries are adapted when a cell first imports them, and the packages
of the host program cannot be imported at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

HIDDEN = frozenset({"agent", "sandbox", "benchmarks"})
"""Reference programs and scorers must not be readable by a model."""

Patch = Callable[[Any], None]


class _Patched(Loader):
    """Runs a module's own loader, then the patch."""

    def __init__(self, loader: Loader, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._patch(module)


class AfterImport(MetaPathFinder):
    """Applies a patch to a module right after it was imported for the first time."""

    def __init__(self, patches: Mapping[str, Patch]) -> None:
        self._patches = dict(patches)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        patch = self._patches.get(fullname)
        if patch is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Patched(spec.loader, patch)
        return spec


class Hidden(MetaPathFinder):
    """Hides the host's packages; a module of that name in the work directory is the model's own."""

    def __init__(self, work_dir: str) -> None:
        self._work_dir = work_dir

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname not in HIDDEN:
            return None
        spec = PathFinder.find_spec(fullname, [self._work_dir], target)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return spec


def install(patches: Mapping[str, Patch], work_dir: str) -> None:
    """Puts both hooks in front; patches at once what is imported already."""
    foreign = [finder for finder in sys.meta_path if "__editable__" in _module_of(finder)]
    for finder in foreign:
        sys.meta_path.remove(finder)
    for name, patch in patches.items():
        if name in sys.modules:
            patch(sys.modules[name])
    sys.meta_path[:0] = [Hidden(work_dir), AfterImport(patches)]


def _module_of(finder: Any) -> str:
    return str(getattr(finder, "__module__", ""))
