"""What is shown while a run goes on, and the table at its end."""

from __future__ import annotations

import io
import re

from rich.console import Console

from agent.progress import Bar, Course, Plain, Silent, watching
from agent.stats import Item, Row, count, row
from agent.table import losses, table
from tests.runs.results import failed, result

TIERS = ("easy", "medium", "hard", "expert")


def owed(count: int, task: str = "swatch_rgb", group: str = "colour") -> list[Item]:
    return [Item(f"{task}/{n}", 0, task, group, TIERS[n % 4]) for n in range(count)]


def right(item: Item) -> Row:
    return row(result(item.id, task=item.task))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_come_now_and_then_and_the_last_one_is_complete() -> None:
    stream, todo = io.StringIO(), owed(200)
    with watching(todo, {}, stream) as watcher:
        assert isinstance(watcher, Plain)
        for item in todo[:-1]:
            watcher.done(right(item))
        watcher.done(row(failed(todo[-1].id)))
        watcher.note("a [bold]note[/bold]")
    lines = stream.getvalue().splitlines()
    assert 15 <= len(lines) <= 30
    assert lines[-2] == "200/200 · % correct 100 [98.1, 100] · failed 1"
    assert lines[-1] == "a [bold]note[/bold]"


def test_time_left_counts_this_session_only() -> None:
    now = 100.0
    todo = owed(10)
    before = {(item.id, 0): right(item) for item in todo[:4]}
    course = Course(todo, dict(before), clock=lambda: now)
    assert "left" not in course.line()
    now = 130.0
    course.add(right(todo[4]))
    course.add(right(todo[5]))
    assert course.line().endswith("6/10 · % correct 100 [61.0, 100] · about 0:01:00 left")


def test_a_terminal_gets_a_bar_and_notes_are_not_markup() -> None:
    stream, todo = Terminal(), owed(4)
    with watching(todo, {}, stream) as watcher:
        assert isinstance(watcher, Bar)
        for item in todo:
            watcher.done(right(item))
        watcher.note("see [red]this[/red]")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "4/4 · % correct 100 [51.0, 100]" in shown
    assert "see [red]this[/red]" in shown


def test_silent_says_nothing() -> None:
    Silent().done(right(owed(1)[0]))
    Silent().note("x")


def printed(todo: list[Item], rows: dict[tuple[str, int], Row], width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(table(todo, rows))
    return stream.getvalue()


def test_table_fits_80_columns_with_groups_tiers_and_losses() -> None:
    todo = [*owed(8), *owed(4, "circular_shift", "geometry"), *owed(4, "rot_scale", "geometry")]
    rows = {(item.id, 0): right(item) for item in todo[:-2]}
    wrong = result(todo[0].id, value=0, answer=None)
    rows[todo[0].id, 0] = row(wrong)
    rows[todo[1].id, 0] = row(failed(todo[1].id))
    text = printed(todo, rows)
    assert "…" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.split()}
    assert lines["swatch_rgb"][1:] == [
        "7/8",
        "85.7",
        "[48.7,",
        "97.4]",
        "50.0",
        "100",
        "100",
        "100",
        "1",
    ]
    assert lines["geometry"][1] == "6/8"
    assert lines["all"][1:5] == ["13/16", "92.3", "[66.7,", "98.6]"]
    flat = " ".join(text.split())
    assert "3 of 16 owed samples have no score (1 model_api, 2 not run)" in flat
    assert "75.0 to 93.8 %" in flat


def test_names_from_data_are_not_markup() -> None:
    todo = owed(1, "[red]task[/red]", "[link=x]")
    assert "[red]task[/red]" in printed(todo, {}, width=100)


def test_nothing_owed() -> None:
    assert "All 0 owed samples are scored." in printed([], {})
    assert losses(count([], {})) == "All 0 owed samples are scored."
