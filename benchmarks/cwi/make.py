"""Making one item: draws are repeated until one is well posed and no shortcut gets it right.

Pure but for reading the photograph: the same order gives the same bytes, in whichever process.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np

from benchmarks.answers import answer_span
from benchmarks.cwi import photos
from benchmarks.cwi.item import TIERS, Draft, Task, Tier
from benchmarks.cwi.photos import Photo, Split
from benchmarks.cwi.pixels import png
from benchmarks.cwi.rules import score
from benchmarks.cwi.source import GENERATOR
from benchmarks.cwi.tasks import TASKS
from benchmarks.errors import DataError

_DRAWS_A_PHOTO = 6
_PHOTOS = 12
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Order:
    """What decides an item."""

    task: str
    split: Split
    number: int
    seed: int
    candidates: tuple[Photo, ...]
    """The photo to use and, after that, those to go on to where it gives no item."""

    @property
    def tier(self) -> Tier:
        """Tiers take turns, so that the first items of a split cover them all."""
        return TIERS[self.number % len(TIERS)]

    @property
    def id(self) -> str:
        return f"{self.task}/{self.split}/{self.number}"


@dataclass(frozen=True, slots=True)
class Item:
    """A row of the data."""

    id: str
    image: bytes
    image_2: bytes | None
    prompt: str
    answer: str
    difficulty: str
    meta: str
    """JSON text."""
    ill_posed: int
    """Draws that were not well posed."""
    shortcut: int
    """Draws that a shortcut would have got right."""


def order(task: str, split: Split, number: int, seed: int, found: tuple[Photo, ...]) -> Order:
    """The order of one item: the photos of the split take turns, in a sequence the seed sets."""
    turns = [int(place) for place in _rng(seed, task, split, 0, 0).permutation(len(found))]
    first = number % len(turns)
    chosen = tuple(found[place] for place in (turns[first:] + turns[:first])[:_PHOTOS])
    return Order(task, split, number, seed, chosen)


def make(wanted: Order) -> Item:
    """The item.

    Raises:
        DataError: a photograph cannot be read, or none of them gives a well-posed item.
    """
    task = TASKS[wanted.task]
    ill_posed: Counter[str] = Counter()
    shortcut: Counter[str] = Counter()
    for attempt in range(_ROUNDS * _DRAWS_A_PHOTO * len(wanted.candidates)):
        photo = wanted.candidates[attempt // _DRAWS_A_PHOTO % len(wanted.candidates)]
        rng = _rng(wanted.seed, wanted.task, wanted.split, wanted.number + 1, attempt)
        draft = task.draw(photos.pixels(photo.path), rng, wanted.tier)
        if draft.ill_posed is not None:
            ill_posed[photo.id] += 1
        elif (name := solved_by(task, draft)) is not None:
            shortcut[name] += 1
        else:
            return _item(wanted, task, photo, draft, ill_posed, shortcut)
    raise DataError(
        f"expected photographs that give a {wanted.task} item, found none among "
        f"{', '.join(photo.id for photo in wanted.candidates[:3])} …: add others"
    )


def solved_by(task: Task, draft: Draft) -> str | None:
    """The first shortcut of the task that would get this draft right, or None. Repeating the
    example of the prompt is one for every task."""
    tried = {"example": answer_span(draft.prompt, None) or "", **task.shortcuts(draft)}
    for name, answer in tried.items():
        if score(task.name, draft.answer, answer).value == 1:
            return name
    return None


def _item(
    wanted: Order,
    task: Task,
    photo: Photo,
    draft: Draft,
    ill_posed: Counter[str],
    shortcut: Counter[str],
) -> Item:
    meta = {
        "generator": GENERATOR,
        "task": task.name,
        "version": task.version,
        "seed": wanted.seed,
        "split": wanted.split,
        "number": wanted.number,
        "tier": wanted.tier,
        "photos": [photo.id],
        "parameters": dict(draft.parameters),
        "gold": list(draft.gold),
        "rejected": {"ill_posed": ill_posed.total(), "shortcut": dict(sorted(shortcut.items()))},
    }
    return Item(
        id=wanted.id,
        image=png(draft.picture),
        image_2=None if draft.picture_2 is None else png(draft.picture_2),
        prompt=draft.prompt,
        answer=draft.answer,
        difficulty=wanted.tier,
        meta=json.dumps(meta, sort_keys=True, allow_nan=False),
        ill_posed=ill_posed.total(),
        shortcut=shortcut.total(),
    )


def _rng(seed: int, task: str, split: Split, number: int, attempt: int) -> np.random.Generator:
    parts = [seed, zlib.crc32(task.encode()), photos.SPLITS.index(split), number, attempt]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(parts)))
