"""Bytecode for the packages that boxes import, where an installer left none.

A box of the bubblewrap or process wall may not write into this host's packages, so without
bytecode every kernel would compile numpy, matplotlib and IPython anew: seconds of CPU a box. pip
compiles while it installs, uv as a rule does not. One import as this user writes what is missing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from importlib.util import cache_from_source, find_spec
from pathlib import Path

IMPORTS = (
    "numpy, pandas, cv2, PIL.Image, PIL.ImageDraw, matplotlib.pyplot, "
    "matplotlib.backends.backend_agg, scipy.ndimage, scipy.optimize, scipy.signal, scipy.spatial, "
    "scipy.stats, skimage.color, skimage.feature, skimage.filters, skimage.io, skimage.measure, "
    "skimage.metrics, skimage.morphology, skimage.registration, skimage.transform, "
    "IPython.core.interactiveshell, ipykernel.ipkernel, ipykernel.kernelapp, ipykernel.zmqshell, "
    "jupyter_client.session, zmq"
)
"""What kernels load by themselves, and what programs about pictures load first."""
MARKS = (("numpy", "__init__"), ("matplotlib", "pyplot"), ("IPython", "core/interactiveshell"))
SECONDS = 180


def ensure_bytecode() -> None:
    """Writes missing bytecode beside the packages, once; quick when there is nothing to do. Where
    the packages cannot be written to, or bytecode is switched off, boxes are slower and work."""
    if sys.dont_write_bytecode or not any(_missing(*mark) for mark in MARKS):
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-c", f"import {IMPORTS}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            env={"MPLBACKEND": "agg"},
        )


def _missing(package: str, module: str) -> bool:
    """Whether one module of an installed package has no bytecode, yet could have."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return False
    source = Path(spec.origin).parent / f"{module}.py"
    compiled = Path(cache_from_source(str(source)))
    return source.is_file() and not compiled.exists() and os.access(source.parent, os.W_OK)
