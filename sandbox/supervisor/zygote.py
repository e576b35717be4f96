"""Forks kernels that need not import anything.

Two of them live in a box. The light one is forked from the supervisor, has ipykernel and serves at
once. On request it forks the full one, which imports the scientific libraries in a thread at the
lowest priority (a thread, because kernels forked later must not inherit that priority and an
ordinary user cannot raise it again) and serves kernels in which `import cv2` costs nothing.

A zygote has one thread whenever it forks. Kernels are forked twice, so that the supervisor is their
parent and sees how they end. Requests: one JSON datagram and a descriptor.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .linux import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl, threads
from .spec import KernelSpec

_LIBRARIES = (
    "numpy", "numpy.random", "cv2", "PIL.Image", "PIL.ImageDraw", "PIL.ImageOps", "PIL.ImageFilter",
    "PIL.PngImagePlugin", "PIL.JpegImagePlugin", "scipy.ndimage", "scipy.optimize", "scipy.signal",
    "skimage.io", "skimage.color", "skimage.feature", "skimage.filters", "skimage.measure",
    "skimage.metrics", "skimage.morphology", "skimage.registration", "skimage.segmentation",
    "skimage.transform", "skimage.exposure", "matplotlib", "matplotlib.pyplot",
    "matplotlib.backends.backend_agg",
)  # fmt: skip


EXIT_SECONDS = 2.0
"""A thread that Python has joined may take a moment to leave the process."""


def serve(control: socket.socket, supervisor: int, *, full: bool) -> None:
    """Answers requests until the supervisor is gone. Never returns.

    Says `{"ready": …}` first, with what it could not import and how many threads it has.
    """
    prctl(PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(0)
    _say(control, {"pid": os.getpid()})
    missing = _in_idle_time(_warm_up) if full else _import_kernel()
    gc.collect()
    gc.freeze()
    _say(control, {"ready": True, "missing": missing, "threads": threads()})
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 65536, 1)
        if not data:
            os._exit(0)
        _say(control, {"took": True})
        request = json.loads(data)
        action = _kernel if request["op"] == "kernel" else _full
        _fork_twice(action, control, descriptors[0], request, supervisor)
        os.close(descriptors[0])


def main(descriptor: int) -> None:
    """A light zygote started anew, after the first was killed."""
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    serve(socket.socket(fileno=descriptor), os.getppid(), full=False)


def _kernel(descriptor: int, request: dict[str, Any], _: int) -> None:
    kernel = importlib.import_module("potbox.kernel")  # has been imported by the zygote
    kernel.run(socket.socket(fileno=descriptor), KernelSpec(**request["spec"]))


def _full(descriptor: int, _: dict[str, Any], supervisor: int) -> None:
    serve(socket.socket(fileno=descriptor), supervisor, full=True)


def _fork_twice(
    action: Callable[[int, dict[str, Any], int], None],
    control: socket.socket,
    descriptor: int,
    request: dict[str, Any],
    supervisor: int,
) -> None:
    """Runs `action` in a grandchild. A zygote with more than one thread does not fork: a lock held
    by the other would stay locked for ever."""
    if threads() != 1:
        _say(control, {"failed": f"{threads()} threads"})
        return
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    status = 1
    try:
        if os.fork():
            status = 0
        else:
            control.close()
            while os.getppid() != supervisor:  # until the process between has ended
                os.sched_yield()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            action(descriptor, request, supervisor)
    finally:
        os._exit(status)


def _say(control: socket.socket, message: dict[str, Any]) -> None:
    control.send(json.dumps(message).encode())


def _import(names: tuple[str, ...]) -> list[str]:
    """Imports what is there; returns what is not, for a box does not fail for a missing library."""
    missing: list[str] = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing.append(f"{name}: {error}"[:200])
    return missing


def _import_kernel() -> list[str]:
    """ipykernel without its debugger, which nobody can use here and which takes longer to import
    than everything else of a kernel."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    missing = _import(("ipykernel.debugger", "potbox.kernel"))
    del sys.modules["debugpy"]
    return missing


def _in_idle_time(work: Callable[[], list[str]]) -> list[str]:
    """Runs `work` in a thread of the lowest priority."""
    result: list[str] = []

    def run() -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 19)  # 0: on Linux this thread alone
        result.extend(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    until = time.monotonic() + EXIT_SECONDS
    while threads() > 1 and time.monotonic() < until:
        time.sleep(0.001)
    return result


def _warm_up() -> list[str]:
    """Imports the libraries and lets a throw-away shell import what shells import late."""
    missing = _import(_LIBRARIES)
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell.instance(
        config=Config(
            {"HistoryManager": {"enabled": False}, "InteractiveShell": {"colors": "nocolor"}}
        )
    )
    shell.run_cell("_ = 1", store_history=False)
    InteractiveShell.clear_instance()
    return missing
