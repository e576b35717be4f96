"""One poll loop: file descriptors, zmq sockets and timers call functions; nothing sleeps."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import zmq


class Timer:
    """A call at a time; `cancel` makes it nothing."""

    __slots__ = ("action", "at")

    def __init__(self, at: float, action: Callable[[], object]) -> None:
        self.at = at
        self.action: Callable[[], object] | None = action

    def cancel(self) -> None:
        self.action = None


class Reactor:
    """Callbacks run one after the other in one thread and must not block."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self._actions: dict[Any, Callable[[], object]] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()

    def watch(self, source: Any, action: Callable[[], object]) -> None:
        """Calls `action` while `source` (file descriptor or zmq socket) is readable or broken."""
        self._actions[source] = action
        self._poller.register(source, zmq.POLLIN | zmq.POLLERR)

    def unwatch(self, source: Any) -> None:
        if self._actions.pop(source, None) is not None:
            self._poller.unregister(source)

    def later(self, seconds: float, action: Callable[[], object]) -> Timer:
        timer = Timer(time.monotonic() + seconds, action)
        heapq.heappush(self._timers, (timer.at, next(self._order), timer))
        return timer

    def turn(self) -> None:
        """Waits for the next event or timer and handles all that are due."""
        for source, _ in self._poller.poll(self._timeout_ms()):
            # A callback before this one may have closed it.
            action = self._actions.get(source)
            if action is not None:
                action()
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.action is not None:
                timer.action()

    def _timeout_ms(self) -> int | None:
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return max(0, math.ceil((self._timers[0][0] - time.monotonic()) * 1000))
