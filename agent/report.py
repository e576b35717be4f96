"""`report.html`: one page that can be mailed, with the result table and every turn as it happened.

Pages hold so many samples and so many megabytes; a larger run gets several. There are no scripts,
everything from outside is escaped, and what is written derives from the run directory alone. A page
of 500 samples takes at most 17 MB of pictures (`agent.gallery`) and about 5 of text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agent.codec import CodecError
from agent.errors import RunDirError
from agent.files import write_whole
from agent.gallery import ROOM, Gallery, side_for
from agent.progress import per_cent
from agent.report_steps import Shown, shown
from agent.rundir import RunDir
from agent.showing import visible
from agent.stats import Count, Item, Row, by, count, row
from agent.table import groups_of, losses, tiers_of, why_lost

PER_PAGE = 500
"""Samples in one page."""


def write_report(
    run: RunDir, out: Path | None = None, per_page: int = PER_PAGE, room: int = ROOM
) -> Path:
    """Writes the page (`report.html` in the run directory by default) and gives its path.

    Further pages lie beside it as `<name>-2.html`, …

    Raises:
        RunDirError: the run or a record cannot be read, or the page cannot be written.
    """
    first = out or run.path / "report.html"
    if first.is_dir():
        raise RunDirError(f"--out {first}: expected a file to write, found a folder")
    about, owed = run.read_json("config.json"), run.read_owed()
    rows = {(r.id, r.repeat): row(r) for r in run.results()}
    recorded = [item for item in owed if (item.id, item.repeat) in rows]
    parts = [recorded[at : at + per_page] for at in range(0, len(recorded), per_page)] or [[]]
    names = [first.name] + [f"{first.stem}-{n}{first.suffix}" for n in range(2, len(parts) + 1)]
    side = side_for(run.images, room * len(parts))
    template = _environment().get_template("report.html.j2")
    for number, part in enumerate(parts):
        gallery = Gallery(run.images, first.parent.resolve(), side, room)
        text = template.render(
            head=_head(run, about, owed, rows, names, number),
            tiers=tiers_of(owed),
            lines=_lines(owed, rows),
            why=why_lost(owed, rows),
            samples=_samples(run, part, gallery),
            gallery=gallery,
        )
        write_whole(first.with_name(names[number]), text.encode("utf-8", "replace"))
    return first


def _environment() -> Environment:
    def finalize(value: object) -> object:
        # What the template itself put together (`__html__`) is safe already, and stays as it is.
        return (
            visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
        )

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )


def _samples(run: RunDir, part: Sequence[Item], gallery: Gallery) -> Iterator[Shown]:
    """One at a time, so that memory holds one record and the page."""
    for item in part:
        path = run.record_path((item.id, item.repeat))
        try:
            yield shown(run.read(path), gallery)
        except CodecError as error:
            raise RunDirError(f"{path}: cannot be used: {error}") from error


def _table(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What stands there if it is an object; a page of a damaged run is better than none."""
    found = about.get(name)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _head(
    run: RunDir,
    about: Mapping[str, Any],
    owed: Sequence[Item],
    rows: Mapping[tuple[str, int], Row],
    names: Sequence[str],
    number: int,
) -> dict[str, Any]:
    whole = count(owed, rows)
    config, versions = _table(about, "config"), _table(about, "versions")
    tokens = (
        sum(r.prompt_tokens for r in rows.values()),
        sum(r.completion_tokens for r in rows.values()),
    )
    return {
        "title": f"{config.get('model')} on {config.get('benchmark')}",
        "subtitle": f"{about.get('created', '')} · arm {config.get('arm')} · dialect "
        f"{config.get('dialect')} · sandbox {config.get('sandbox')} · split {config.get('split')}",
        "accuracy": "–" if whole.accuracy is None else per_cent(whole.accuracy),
        "interval": f"{whole.correct} of {whole.scored} scored samples are correct"
        + (f"; 95 % interval {_range(whole)} %." if whole.interval else "."),
        "losses": losses(whole),
        "effort": f"{sum(r.turns for r in rows.values())} turns · {tokens[0]:,} prompt and "
        f"{tokens[1]:,} completion tokens"
        + (" (partly our estimate)" if any(r.estimated for r in rows.values()) else ""),
        "settings": json.dumps(about, indent=1, ensure_ascii=False),
        "version": versions.get("potrunner", ""),
        "folder": run.path.name,
        "pages": [
            {"name": f"page {n + 1}", "href": name, "here": n == number}
            for n, name in enumerate(names)
        ],
    }


def _lines(owed: Sequence[Item], rows: Mapping[tuple[str, int], Row]) -> Iterator[dict[str, Any]]:
    """The lines of the result table, in its order: group, its tasks, …, all."""
    tiers, groups = tiers_of(owed), groups_of(owed)
    for group, inside in groups.items():
        if len(groups) > 1 and len({item.task for item in inside}) > 1:
            yield _line("group", group or "(no group)", inside, tiers, rows)
        for task in dict.fromkeys(item.task for item in inside):
            yield _line("task", task, [i for i in inside if i.task == task], tiers, rows)
    yield _line("all", "all", owed, tiers, rows)


def _line(
    kind: str,
    name: str,
    owed: Sequence[Item],
    tiers: Sequence[str],
    rows: Mapping[tuple[str, int], Row],
) -> dict[str, Any]:
    part, tier = count(owed, rows), by(lambda item: item.difficulty, owed, rows)
    low, high = part.interval or (0.0, 0.0)
    return {
        "kind": kind,
        "name": name,
        "scored": f"{part.scored}/{part.owed}",
        "accuracy": _rate(part),
        "interval": _range(part) if part.interval else "",
        "low": f"{100 * low:.2f}" if part.interval else None,
        "span": f"{100 * (high - low):.2f}",
        "at": f"{100 * (part.accuracy or 0):.2f}",
        "tiers": [_rate(tier.get(name)) for name in tiers],
        "blank": part.unanswered,
        "lost": part.owed - part.scored,
    }


def _rate(part: Count | None) -> str:
    return "–" if part is None or part.accuracy is None else per_cent(part.accuracy)


def _range(part: Count) -> str:
    low, high = part.interval or (0.0, 1.0)
    return f"{per_cent(low)} to {per_cent(high)}"
