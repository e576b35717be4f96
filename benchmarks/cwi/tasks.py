"""The table of generators and the reference programs that solve their items.

A reference program is what a good agent would write: Python in one to three cells, from the picture
and the prompt alone. The files can be run as they are; their header stands for what an agent knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.cwi.generators import circular_shift, crop_provenance, swatch_rgb
from benchmarks.cwi.item import Task
from benchmarks.errors import BenchmarkError

TASKS: Mapping[str, Task] = {
    task.name: task for task in (circular_shift.TASK, crop_provenance.TASK, swatch_rgb.TASK)
}
_REFERENCE = Path(__file__).parent / "reference"
_MARK = re.compile(r"^# ?%%.*\n", re.MULTILINE)


def recognise(prompt: str) -> str | None:
    """The task whose prompt this is, or None. The prompt may stand inside a longer text."""
    return next((name for name, task in TASKS.items() if task.opening in prompt), None)


def references() -> tuple[str, ...]:
    """The tasks that have a reference program."""
    return tuple(name for name in TASKS if (_REFERENCE / f"{name}.py").is_file())


def reference_cells(task: str) -> tuple[str, ...]:
    """The cells of the task's reference program, without its header.

    They expect the names `PATH` (the picture's path) and `PROMPT`. The last line that the last cell
    prints is `ANSWER: <answer>`.

    Raises:
        BenchmarkError: the task has no reference program.
    """
    if task not in references():
        raise BenchmarkError(f"expected a task with a reference program, found {task!r}")
    text = (_REFERENCE / f"{task}.py").read_text(encoding="utf-8")
    return tuple(cell.strip("\n") for cell in _MARK.split(text)[1:])
