"""What a cell costs, measured from outside its kernel: CPU seconds and highest resident memory."""

from __future__ import annotations

import resource
from collections.abc import Iterable

from . import linux

SAMPLE_SECONDS = 0.2


class Meter:
    """Measures one kernel process, and its children, during one cell."""

    def __init__(self, pid: int, limit_mb: int) -> None:
        self._pid = pid
        self._limit_mb = limit_mb
        self._before = linux.cpu_seconds(pid)
        self._peak = 0
        self.cpu_seconds = 0.0
        linux.reset_peak(pid)

    def sample(self) -> None:
        """Reads the memory of kernel and children now, for cells that take longer."""
        kernel = linux.stat(self._pid)
        total = (kernel[3] if kernel else 0) + sum(linux.descendants(self._pid).values())
        self._peak = max(self._peak, total)

    def finish(self, leftovers: Iterable[int]) -> None:
        """The cell is over, the kernel lives; nobody has waited for the leftovers."""
        own = linux.cpu_seconds(self._pid) - self._before
        self.cpu_seconds = max(0.0, own) + sum(map(linux.cpu_seconds, leftovers))
        self._peak = max(self._peak, linux.peak_bytes(self._pid))

    def died(self, usage: resource.struct_rusage) -> None:
        """The kernel is gone; the figures of its whole life are known."""
        self.cpu_seconds = max(0.0, usage.ru_utime + usage.ru_stime - self._before)
        self._peak = max(self._peak, usage.ru_maxrss * 1024)

    @property
    def peak_mb(self) -> float:
        """At most the box's limit: forks share pages that are counted once for each."""
        return min(self._peak / 1048576, self._limit_mb)
