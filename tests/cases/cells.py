"""What a case says of a cell, checked on a box that many cases share; the next cell must work."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from PIL import Image

from sandbox.outputs import Error, Execution, Kernel, Status
from sandbox.spec import Limits
from tests.sandbox.boxes import Cells

WALLS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
LIMITS = Limits(
    memory_mb=768,
    pids=64,
    work_mb=48,
    tmp_mb=48,
    shm_mb=64,
    cell_seconds=30,
    grace_seconds=2.0,
    output_chars=4000,
    pictures=4,
    picture_pixels=250_000,
)
Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Case:
    """One cell and what must come of it."""

    code: str
    status: Status = "ok"
    cause: str | None = None
    kernel: Kernel | None = "kept"
    """None: it depends on the machine's load."""
    text: tuple[str, ...] = ()
    """What the model must see, in outputs or note."""
    hidden: tuple[str, ...] = ()
    """What it must not see."""
    error: str | None = None
    """Name of the one exception that is shown."""
    message: str = ""
    """A part of what it says."""
    pictures: tuple[tuple[int, int], ...] | int | None = None
    """Sizes, or how many."""
    colour: Colour | None = None
    """Of the last picture's centre."""
    before: tuple[str, ...] = ()
    """Cells that come first."""
    deadline: float | None = None
    """Seconds given to the cell."""
    within: float = 30.0
    """Seconds that it may take on a loaded machine."""
    after: str = "print('next', 'cell')"
    shows: str = "next cell"


def told(execution: Execution) -> str:
    """All that a model reads of a cell."""
    messages = [o.message for o in execution.outputs if isinstance(o, Error)]
    return "\n".join([execution.text, *messages, execution.note or ""])


def check(cells: Cells, case: Case) -> Execution:
    for code in case.before:
        cells.run(code)
    execution = cells.run(case.code, case.deadline)
    seen = told(execution)
    assert (execution.status, execution.cause) == (case.status, case.cause), execution
    assert case.kernel in (None, execution.kernel), execution
    assert execution.seconds < case.within
    seen.encode("utf-8")
    assert not [mark for mark in ("\x1b", "\x00", "\r", "\b") if mark in seen]
    assert [words for words in case.text if words not in seen] == [], seen
    assert [words for words in case.hidden if words in seen] == [], seen
    names = [o.name for o in execution.outputs if isinstance(o, Error)]
    if case.status in ("ok", "error"):
        assert names == [case.error] * (case.error is not None), execution
    assert case.message in "".join(o.message for o in execution.outputs if isinstance(o, Error))
    _pictures(execution, case)
    following = cells.run(case.after)
    assert (following.status, case.shows in following.text) == ("ok", True), following
    return execution


def _pictures(execution: Execution, case: Case) -> None:
    sizes = tuple((shown.width, shown.height) for shown in execution.pictures)
    assert all(width and height for width, height in sizes)
    if isinstance(case.pictures, int):
        assert len(sizes) == case.pictures, sizes
    elif case.pictures is not None:
        assert sizes == case.pictures
    if case.colour is not None:
        with Image.open(io.BytesIO(execution.pictures[-1].data)) as image:
            middle = image.convert("RGB").getpixel((image.width // 2, image.height // 2))
        assert middle == case.colour
