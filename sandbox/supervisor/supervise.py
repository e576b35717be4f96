"""The supervisor's main loop: the box's first process.

Takes the protocol off file descriptors 0 and 1, forks the light zygote, then serves the host until
the stream ends, nobody greets within 10 s, or the lifetime is over. Reaps every process of the box.

    host → box   hello · preload · run · interrupt · kill
    box → host   ready | refused · preloaded · partial · done
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

from . import counters
from .linux import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl, threads


def main() -> None:
    """Never returns."""
    incoming, outgoing = _private_stream()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python's handler would let a cell end the box
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # for the zygotes: a thread more and they could not fork
    os.environ.pop(counters.VARIABLE, None)
    state = Path(tempfile.mkdtemp(prefix=".box-"))
    os.environ["MPLCONFIGDIR"] = str(_font_cache(state))
    os.environ["IPYTHONDIR"] = str(state / "ipython")
    if importlib.util.find_spec("ipykernel") is None:
        sys.exit(f"{sys.executable} has no ipykernel: it cannot serve as a box")
    # What both need; imported before the fork, so that it is paid for once.
    importlib.import_module("jupyter_client.session")
    assert threads() == 1, "the supervisor must have one thread when it forks"
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    supervisor = os.getpid()
    light = os.fork()
    if light == 0:
        os.close(incoming)
        os.close(outgoing)
        near.close()
        importlib.import_module("potbox.zygote").serve(far, supervisor, full=False)
    far.close()
    service = importlib.import_module("potbox.service")
    service.Service(incoming, outgoing, state, near, light).run()


def _font_cache(state: Path) -> Path:
    """matplotlib's folder, with the list of fonts that the image brought, if it did: making one
    takes a second."""
    folder = state / "matplotlib"
    folder.mkdir()
    for source in Path(sys.prefix, "share/matplotlib").glob("fontlist-*.json"):
        (folder / source.name).write_bytes(source.read_bytes())
    return folder


def _private_stream() -> tuple[int, int]:
    """Moves the protocol where nothing that is started later will look."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return incoming, outgoing
