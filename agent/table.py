"""The result table: task, group and tier with intervals, and what was lost, counted apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group as PrintedGroup
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agent.progress import per_cent, percent
from agent.showing import cut, visible
from agent.stats import Count, Item, Row, by, count, reasons

Rows = Mapping[tuple[str, int], Row]
_MOST_TIERS = 6
"""Columns; a benchmark with more difficulties gets none."""
_LONGEST_REASON = 500
"""Characters of a failure's message; the record has the rest."""


def table(owed: Sequence[Item], rows: Rows) -> RenderableType:
    """A line a task under its group, one a group where there are several, all, and the losses.

    `blank`: scored 0 because the run ended without an answer. Fits 80 columns with the four tiers
    of CwI.
    """
    tiers, groups = tiers_of(owed), groups_of(owed)
    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    made.add_column("task", no_wrap=True, min_width=16)
    for name in ("scored", "% correct [95 %]", *map(_heading, tiers), "blank"):
        made.add_column(Text(name), justify="right", no_wrap=True)
    for group, inside in groups.items():
        if len(groups) > 1:
            cells = _cells(group or "(no group)", inside, tiers, rows)
            alone = len({item.task for item in inside}) == 1
            made.add_row(*(cells[:1] if alone else cells), style="italic")
        for task in dict.fromkeys(item.task for item in inside):
            one = [item for item in inside if item.task == task]
            made.add_row(*_cells(f"  {task}", one, tiers, rows))
        made.add_section()
    made.add_row(*_cells("all", owed, tiers, rows), style="bold")
    return PrintedGroup(made, Text(losses(count(owed, rows))))


def why_lost(owed: Sequence[Item], rows: Rows) -> list[str]:
    """A line a kind of failure: what the first one said, and how many others said otherwise."""
    lines: list[str] = []
    for kind, messages in sorted(reasons(owed, rows).items()):
        others = len(messages) - 1
        more = f" (and {others} other message{'s' if others > 1 else ''})" if others else ""
        said = " ".join(visible(cut(messages[0], _LONGEST_REASON)).split())
        lines.append(f"{kind}: {said}{more}")
    return lines


def tiers_of(owed: Sequence[Item]) -> list[str]:
    """The difficulties that get a column: none where there are too many."""
    tiers = list(dict.fromkeys(item.difficulty for item in owed if item.difficulty))
    return tiers if len(tiers) <= _MOST_TIERS else []


def groups_of(owed: Sequence[Item]) -> dict[str, list[Item]]:
    """The owed of each group, in the order in which groups first come."""
    groups: dict[str, list[Item]] = {}
    for item in owed:
        groups.setdefault(item.group, []).append(item)
    return groups


def losses(whole: Count) -> str:
    """One line: what has no score, and where the accuracy could lie if it had."""
    missing = whole.owed - whole.scored
    if not missing or whole.bounds is None:
        return f"All {whole.owed} owed samples are scored."
    parts = [f"{n} {kind}" for kind, n in sorted(whole.failed.items())]
    parts += [f"{whole.unscored} unscored"] if whole.unscored else []
    parts += [f"{whole.pending} not run"] if whole.pending else []
    low, high = (100 * bound for bound in whole.bounds)
    return (
        f"{missing} of {whole.owed} owed samples have no score ({', '.join(parts)}); "
        f"if all of them were wrong or right: {low:.1f} to {high:.1f} %."
    )


def _cells(name: str, owed: Sequence[Item], tiers: Sequence[str], rows: Rows) -> list[Text]:
    part, tier = count(owed, rows), by(lambda item: item.difficulty, owed, rows)
    cells = [
        *(name, f"{part.scored}/{part.owed}", percent(part)),
        *(_short(tier.get(difficulty)) for difficulty in tiers),
        str(part.unanswered),
    ]
    return [Text(cell) for cell in cells]  # never as markup: names come from data


def _heading(tier: str) -> str:
    """Four characters, so that the longest task name and all its figures fit in 80 columns."""
    return tier if len(tier) <= 4 else f"{tier[:3]}."


def _short(part: Count | None) -> str:
    if part is None or part.accuracy is None:
        return "–"
    return per_cent(part.accuracy)
