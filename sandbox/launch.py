"""How every wall starts the supervisor: where it lies, with which Python flags and environment.

A copy of it is mounted read-only at `SUPERVISOR_MOUNT` (the process wall uses one in place) and
started as `python3 *PYTHON_FLAGS <folder>`, working directory = the work directory. It moves the
protocol off file descriptors 0 and 1 by itself.
"""

from __future__ import annotations

from pathlib import Path

SUPERVISOR_DIR = Path(__file__).parent / "supervisor"
SUPERVISOR_MOUNT = "/opt/potrunner/supervisor"

PYTHON_FLAGS = ("-s", "-P")
"""No user site, no current directory on the path. Not `-I`: that would ignore PYTHONHASHSEED."""

ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "USER": "box",
    "LOGNAME": "box",
}
"""The whole environment a box starts with, beside PATH (and TMPDIR where it is not /tmp). The
supervisor adds HOME and what the libraries need; nothing of the host's environment enters."""
