"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere.

Both say how many are done, the accuracy so far with its interval, failures and the time left.
Everything goes to one stream (standard error), so that standard output holds results only.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from agent.stats import Count, Item, Row, count

_LINES = 20
"""Plain lines in all, at least; failures and notes come on top."""
_SECONDS = 60.0
"""A plain line comes at least this often while samples end."""


class Watcher(Protocol):
    """Is told how a run goes."""

    def done(self, row: Row) -> None: ...
    def note(self, line: str) -> None: ...


class Silent:
    """Looks at nothing."""

    def done(self, row: Row) -> None:
        """Nothing."""

    def note(self, line: str) -> None:
        """Nothing."""


@dataclass(slots=True)
class Course:
    """How far a run is; `clock` in seconds, from any start."""

    owed: Sequence[Item]
    rows: dict[tuple[str, int], Row]
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    before: int = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()
        self.before = len(self.rows)

    def add(self, row: Row) -> None:
        self.rows[row.id, row.repeat] = row

    def line(self) -> str:
        """`12/300 · % correct 91.7 [64.6, 98.5] · failed 1 · about 0:03:12 left`."""
        now = count(self.owed, self.rows)
        parts = [f"{now.owed - now.pending}/{now.owed}", f"% correct {percent(now)}"]
        if now.unscored:
            parts.append(f"unscored {now.unscored}")
        if failed := sum(now.failed.values()):
            parts.append(f"failed {failed}")
        if left := self._left(now):
            parts.append(f"about {left} left")
        return " · ".join(parts)

    def _left(self, now: Count) -> str | None:
        finished = len(self.rows) - self.before
        if finished <= 0 or not now.pending:
            return None
        seconds = round((self.clock() - self.started) / finished * now.pending)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def percent(part: Count) -> str:
    """`91.7 [64.6, 98.5]`, in per cent, or a dash where nothing is scored."""
    if part.accuracy is None or part.interval is None:
        return "–"
    low, high = part.interval
    return f"{per_cent(part.accuracy)} [{per_cent(low)}, {per_cent(high)}]"


def per_cent(share: float) -> str:
    """`0`, `91.7`, `100`: one decimal, none at the ends."""
    return f"{100 * share:.0f}" if share in (0, 1) else f"{100 * share:.1f}"


@dataclass(slots=True)
class Plain:
    """Lines for a log file."""

    course: Course
    write: Callable[[str], object]
    said: int = 0
    said_at: float = 0.0

    def done(self, row: Row) -> None:
        self.course.add(row)
        finished, now = len(self.course.rows), self.course.clock()
        step = max(1, len(self.course.owed) // _LINES)
        last = finished >= len(self.course.owed)
        if last or finished - self.said >= step or now - self.said_at >= _SECONDS:
            self.said, self.said_at = finished, now
            self.write(self.course.line() + "\n")

    def note(self, line: str) -> None:
        self.write(line + "\n")


@dataclass(slots=True)
class Bar:
    """A bar that redraws itself."""

    course: Course
    progress: Progress

    def __post_init__(self) -> None:
        done = len(self.course.rows)
        self.progress.add_task(self.course.line(), total=len(self.course.owed), completed=done)

    def done(self, row: Row) -> None:
        self.course.add(row)
        task = self.progress.task_ids[0]
        self.progress.update(
            task, completed=len(self.course.rows), description=self.course.line(), refresh=False
        )

    def note(self, line: str) -> None:
        self.progress.console.print(Text(line))


class Lasting(io.TextIOBase):
    """A stream that takes everything: when its terminal is closed, its disk full or its reader
    gone, the run goes on unseen. The record is what counts."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str, /) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


@contextmanager
def watching(
    owed: Sequence[Item],
    rows: Mapping[tuple[str, int], Row],
    stream: TextIO,
    *,
    bar: bool = True,
) -> Generator[Watcher]:
    """Shows the course of a run on a stream until the block ends; without `bar` in lines also on a
    terminal, where somebody may be typing."""
    course = Course(owed, dict(rows))
    lasting = cast("TextIO", Lasting(stream))
    if not bar or not stream.isatty():
        course_lines = Plain(course, lasting.write, said_at=course.clock())
        yield course_lines
        lasting.flush()
        return
    words = TextColumn("{task.description}", markup=False)
    with Progress(BarColumn(bar_width=20), words, console=Console(file=lasting)) as progress:
        yield Bar(course, progress)
