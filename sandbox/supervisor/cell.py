"""One cell, from the request to its report.

It is over when the kernel has sent both its reply and *idle* for this very request, or when the
kernel has died. What is left of it then (children, open pipes) is ended before the report is made.
The deadline is the host's: `interrupt` and `kill` come from there.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import aftermath, counters
from .aftermath import CellLimits
from .files import WorkDir
from .fulltext import FullText
from .handle import Handle
from .items import Picture
from .linux import kill_all, kill_below
from .meter import SAMPLE_SECONDS, Meter
from .output import Output
from .reactor import Reactor, Timer
from .screen import Screen
from .shape import as_dict

FIRST_PARTIAL = 0.03
NEXT_PARTIAL = 0.15
REPLY_SECONDS = 1.0
"""After *idle*, a reply that has not come by then will not come (the kernel's handler failed)."""
MAX_SENT_MB = 96
MAX_SENT_BYTES = MAX_SENT_MB * 1024 * 1024
"""Of one cell's pictures, encoded; a frame holds no more than twice that."""
RESTARTED = "The kernel was restarted: all variables and imports are lost; files are kept."

Send = Callable[[dict[str, Any], list[bytes]], None]


class Cell:
    """`on_end` is called once, after the report was sent."""

    def __init__(
        self,
        number: int,
        reactor: Reactor,
        handle: Handle,
        limits: CellLimits,
        work: WorkDir,
        texts: Path,
        send: Send,
        spared: Callable[[], frozenset[int]],
        on_end: Callable[[], None],
    ) -> None:
        self.number = number
        self._reactor = reactor
        self._handle = handle
        self._limits = limits
        self._work = work
        self._send = send
        self._spared = spared
        self._on_end = on_end
        screen = Screen(limits.chars, limits.pictures)
        full_text = FullText(texts, number, limits.chars)
        self.output = Output(reactor, screen, full_text, self._changed)
        self._sent: set[str] = set()
        self._sent_bytes = 0
        self._unsent: set[str] = set()
        self._request = ""
        self._idle = False
        self._reply: str | None = None
        self._content: dict[str, Any] = {}
        self._deadline_passed = False
        self._partials = 0
        self._partial: Timer | None = None
        self._sampler: Timer | None = None
        self._over = False
        self._lost: str | None = None
        self._started = time.monotonic()
        self._counters = counters.read()
        self._meter = Meter(handle.pid, limits.memory_mb)

    def start(self, code: str, lost: str | None) -> None:
        """Runs the code. `lost` says why the variables of earlier cells are gone, if they are."""
        self._lost = lost
        self._handle.on_drain = self._on_drain
        self._handle.on_message = self._on_message
        ends = self.output.open()
        try:
            self._request = self._handle.execute(code, ends)
        except OSError:
            self._handle.kill()  # its death is seen and reported like any other
        finally:
            for end in ends:
                os.close(end)
        self._sampler = self._reactor.later(SAMPLE_SECONDS, self._sample)

    def interrupt(self) -> None:
        """The deadline has passed: ask nicely."""
        self._deadline_passed = True
        self._handle.interrupt()

    def kill(self) -> None:
        """It did not listen."""
        self._deadline_passed = True
        self._handle.kill()

    def died(self, status: int, usage: resource.struct_rusage) -> None:
        """The kernel's process has ended with this wait status."""
        if self._over:
            return
        self._over = True
        kill_all(self._spared())
        self._meter.died(usage)
        self.output.drain()
        cause = aftermath.death(status, self._counters, counters.read())
        if self._deadline_passed:
            self._report("timeout", "deadline", "restarted")
        else:
            self._report("died", cause, "restarted")

    def withdraw(self) -> None:
        """The kernel died without having begun it: as if it had never been started."""
        self._over = True
        self._stop_timers()
        kill_all(self._spared())
        self.output.close()

    # --- the kernel's messages -----------------------------------------------------------------

    def _on_drain(self, message: str) -> None:
        self.output.drain()
        if message:
            self.output.screen.expect(message)

    def _on_message(self, channel: str, message: dict[str, Any]) -> None:
        if as_dict(message.get("parent_header")).get("msg_id") != self._request:
            return  # an earlier cell's
        kind, content = str(message["header"]["msg_type"]), message["content"]
        if channel == "shell" and kind == "execute_reply":
            self._reply = "ok" if content.get("status") == "ok" else "error"
            self._content = content
            self._handle.silent = 0
        elif kind == "status" and content.get("execution_state") == "idle":
            self._idle = True
            self._reactor.later(REPLY_SECONDS, self._no_reply)
        else:
            self.output.message(kind, message)
        self._finish_if_done()

    def _no_reply(self) -> None:
        if self._over or self._reply is not None:
            return
        self._handle.silent += 1
        if self._handle.silent > 1:
            self.output.note("The kernel no longer answered and was ended.")
            self._handle.kill()
            return
        self._reply = "error"
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if self._over or not self._idle or self._reply is None:
            return
        self._over = True
        self._end_leftovers()
        self.output.drain()
        if self._deadline_passed:
            self._report("timeout", "deadline", "kept")
        else:
            if self._reply == "error":
                self.output.fail_unless_shown(self._content)
            self._report(self._reply, None, "kept")

    def _end_leftovers(self) -> None:
        """Children do not outlive their cell."""
        spared = self._spared() | {self._handle.pid}
        killed = kill_below(spared, before=self._meter.finish)
        if killed:
            self.output.note(f"Ended with the cell: {killed} process(es) that it had left running.")

    # --- what the host is told -----------------------------------------------------------------

    def _changed(self) -> None:
        if self._partial is None and not self._over:
            pause = NEXT_PARTIAL if self._partials else FIRST_PARTIAL
            self._partial = self._reactor.later(pause, self._send_partial)

    def _send_partial(self) -> None:
        self._partial = None
        self._partials += 1
        if not self._over:
            self._emit({"type": "partial", "id": self.number})

    def _emit(self, header: dict[str, Any]) -> None:
        """Sends header and outputs; a picture's bytes travel once."""
        screen = self.output.screen
        fresh: list[Picture] = []
        for picture in screen.pictures():
            if picture.digest in self._sent:
                continue
            self._sent.add(picture.digest)
            self._sent_bytes += len(picture.data)
            if self._sent_bytes <= MAX_SENT_BYTES:
                fresh.append(picture)
            else:
                self._unsent.add(picture.digest)
                self.output.note(f"The pictures of this cell are larger than {MAX_SENT_MB} MB.")
        shown = screen.outputs(self.output.full_text.path)
        header["outputs"] = [o for o in shown if o.get("digest") not in self._unsent]
        header["pictures"] = [picture.digest for picture in fresh]
        header["dropped"] = {
            "chars": screen.dropped_chars,
            "pictures": screen.dropped_pictures + len(self._unsent),
        }
        self._send(header, [picture.data for picture in fresh])

    def _report(self, status: str, cause: str | None, kernel: str) -> None:
        self._stop_timers()
        changes = self._work.changes()
        aftermath.show_saved(self.output, self._work, changes, self._limits)
        self.output.screen.finish()
        aftermath.fit_pictures(self.output, self._limits)
        aftermath.remarks(self.output, self._limits, self._counters, counters.read())
        if kernel == "restarted":
            self.output.note(RESTARTED)
        if self._lost:
            self.output.notes.insert(0, self._lost)
        self.output.close()
        self._emit(
            {
                "type": "done",
                "id": self.number,
                "status": status,
                "cause": cause,
                "kernel": "restarted" if self._lost else kernel,
                "seconds": time.monotonic() - self._started,
                "cpu_seconds": self._meter.cpu_seconds,
                "peak_mb": self._meter.peak_mb,
                "files": aftermath.listed(self.output, changes),
                "notes": self.output.notes,
            }
        )
        self._on_end()

    def _stop_timers(self) -> None:
        for timer in (self._partial, self._sampler):
            if timer is not None:
                timer.cancel()

    def _sample(self) -> None:
        if not self._over:
            self._meter.sample()
            self._sampler = self._reactor.later(SAMPLE_SECONDS, self._sample)
