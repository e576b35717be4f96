"""Settings of the whole interpreter that a cell may change for itself but not for later ones, where
they would slow every line, swallow the deadline's interrupt or keep the kernel from answering."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import resource
import signal
import sys
import threading
from types import FunctionType, MethodType

SWITCH_SECONDS = 0.005
_LIMITS = (
    resource.RLIMIT_AS,
    resource.RLIMIT_DATA,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_NPROC,
)
_soft: dict[int, int] = {}
_recursion = 1000
_home = "/"


def remember() -> None:
    """What holds now is what `tidy` goes back to."""
    global _recursion, _home
    _home = os.getcwd()  # noqa: PTH109
    _recursion = sys.getrecursionlimit()
    _soft.update({limit: resource.getrlimit(limit)[0] for limit in _LIMITS})


def tidy() -> None:
    """Undoes what the last cell left; a higher recursion limit may stay."""
    _somewhere()
    importlib.invalidate_caches()  # files are made faster than a folder's time changes
    if sys.getrecursionlimit() < _recursion:
        sys.setrecursionlimit(_recursion)
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    if isinstance(sys.getprofile(), FunctionType | MethodType):  # cProfile may span cells
        sys.setprofile(None)
    threading.setprofile(None)
    sys.setswitchinterval(SWITCH_SECONDS)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for limit, soft in _soft.items():
        now, hard = resource.getrlimit(limit)
        if now != soft:
            with contextlib.suppress(ValueError, OSError):  # the hard limit is lower by now
                resource.setrlimit(limit, (soft, hard))


def _somewhere() -> None:
    """The folder that a cell went into may be gone; where nothing is, nothing can be saved."""
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        with contextlib.suppress(OSError):
            os.chdir(_home)


def stop_timers() -> None:
    """What would strike in a later cell."""
    faulthandler.cancel_dump_traceback_later()
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
