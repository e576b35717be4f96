"""Starts the supervisor from its directory: `python3 -s -P <directory>`.

Loads the directory as the package `potbox`, so that relative imports work and nothing of it lies on
the kernels' import path. Where the interpreter randomises hashes it starts itself again without.
"""

import importlib.util
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fixed_hashes() -> None:
    """Runs Python again where `-I` or a missing PYTHONHASHSEED made hashes differ between boxes."""
    if os.environ.get("PYTHONHASHSEED") == "0" and not sys.flags.ignore_environment:
        return
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-s", "-P", str(HERE), *sys.argv[1:]]
    os.execve(sys.executable, command, environment)


def load() -> None:
    """Makes `potbox` importable and takes the directory off the path."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    spec = importlib.util.spec_from_file_location(
        "potbox", HERE / "__init__.py", submodule_search_locations=[str(HERE)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["potbox"] = package
    spec.loader.exec_module(package)


fixed_hashes()
load()
if sys.argv[1:2] == ["--zygote"]:
    importlib.import_module("potbox.zygote").main(int(sys.argv[2]))
elif sys.argv[1:2] == ["--picture"]:
    importlib.import_module("potbox.shrink").main(sys.argv[2], int(sys.argv[3]))
else:
    importlib.import_module("potbox.supervise").main()
