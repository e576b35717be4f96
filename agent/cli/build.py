"""`pot build`: items of a benchmark, generated here."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.console import Console
from agent.cli.problem import Problem
from agent.cli.settings import problems, words
from agent.signals import Interrupted
from benchmarks.cwi.build import COUNTS, Written, build
from benchmarks.cwi.photos import SPLITS, Split
from benchmarks.cwi.tasks import TASKS
from benchmarks.registry import check_tasks


def command(
    benchmark: Annotated[str, typer.Argument(help="What to build: cwi.")],
    out: Annotated[Path, typer.Option(help="Folder to write into.")],
    tasks: Annotated[
        str | None, typer.Option(help="Tasks, separated by commas; all by default.")
    ] = None,
    split: Annotated[str, typer.Option(help="Splits, separated by commas.")] = "test",
    photos: Annotated[
        Path | None,
        typer.Option(
            help="Folder of photographs (train2017/ and val2017/ in it, or any); "
            "without it the sample photographs of scikit-image and scikit-learn."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same bytes.")] = 0,
    count: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="Items a task and split; else as published."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Write into a folder that holds something; replace no more "
            "than the files of these tasks and splits.",
        ),
    ] = False,
) -> None:
    """Generate benchmark items from photographs."""
    if benchmark != "cwi":
        raise Problem(f"expected a benchmark that can be built (cwi), found {benchmark!r}")
    with problems():
        chosen = check_tasks(list(TASKS) if tasks is None else words(tasks, "--tasks"), TASKS)
        wanted = check_tasks(words(split, "--split"), SPLITS, kind="split")
    splits: list[Split] = [name for name in SPLITS if name in wanted]
    total = sum(count or COUNTS[name] for name in splits) * len(chosen)
    with _progress(total) as progress:
        made = build(
            out,
            tasks=chosen,
            splits=splits,
            photo_folder=photos,
            seed=seed,
            count=count,
            force=force,
            progress=progress.advance,
        )
        with closing(made):
            for file in _without_tracebacks(made, out):
                progress.say(
                    f"{file.path}: {file.items} items; drawn again: {file.ill_posed} not well "
                    f"posed, {file.shortcut} open to a shortcut"
                )


def _without_tracebacks(made: Iterator[Written], out: Path) -> Iterator[Written]:
    """The same; what goes wrong in making them is one line. What goes wrong in telling of them
    (standard output is gone) is not caught here."""
    nothing = f"nothing in {out} was changed"
    try:
        with problems():
            yield from made
    except Interrupted:
        raise Problem(f"interrupted; {nothing}", code=130) from None
    except BrokenProcessPool:
        raise Problem(
            f"a worker process was killed, perhaps for want of memory; {nothing}, run the same "
            "command again",
            code=1,
        ) from None
    except OSError as problem:
        raise Problem(f"{out} cannot be written: {problem}; {nothing}") from None


class _Reporter:
    """What a person sees meanwhile: a bar on a terminal, one line a file elsewhere."""

    def __init__(self, bar: Progress | None, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task("items", total=total) if bar else None

    def advance(self, item: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, description=item)

    def say(self, line: str) -> None:
        (self._bar.console if self._bar else Console(soft_wrap=True)).print(line, highlight=False)


@contextmanager
def _progress(total: int) -> Generator[_Reporter]:
    if not sys.stderr.isatty():
        yield _Reporter(None, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        yield _Reporter(bar, total)
