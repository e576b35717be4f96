"""`gold`: finds the item that a request is about from its pictures and prompt, and says its gold.

Pictures that were sent untouched are found by hash; shrunk or converted ones by the nearest
thumbnail among the items whose prompt is in the request.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from agent.endpoint import conversation
from agent.endpoint.answerers import Served, error, said
from agent.messages import Reply
from benchmarks.sample import Sample

_SIDE = 24
_FAR = 40.0
"""Root mean square of grey levels; a picture further off than this is none of ours."""


@dataclass(frozen=True, slots=True)
class _Item:
    prompt: str
    target: str
    hashes: tuple[str, ...]
    thumbnail: NDArray[np.float32]
    """One square a picture, side by side."""


class GoldAnswers:
    """The golds of a benchmark's samples."""

    models: tuple[str, ...] = ("gold",)

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._items = [_item(sample) for sample in samples]
        self._by_hash: dict[tuple[str, ...], list[_Item]] = {}
        for item in self._items:
            self._by_hash.setdefault(item.hashes, []).append(item)

    async def answer(self, body: Mapping[str, Any], number: int) -> Served:
        try:
            text = "\n".join(m.text for m in conversation.messages(body) if m.role == "user")
            target = await asyncio.to_thread(self._find, text, conversation.pictures(body))
        except ValueError as problem:
            return error(400, str(problem))
        if target is None:
            return error(400, "gold: no item of the data has these pictures and this prompt")
        reply = Reply(f"<answer>{target}</answer>", finish_reason="stop")
        return said(reply, body, number)

    def _find(self, text: str, pictures: tuple[bytes, ...]) -> str | None:
        """The target of the one item that this is about."""
        asked = [item for item in self._items if item.prompt in text]
        if not pictures:
            return asked[0].target if len(asked) == 1 else None
        exact = self._by_hash.get(_hashes(pictures), [])
        same = [item for item in exact if item.prompt in text]
        if same:
            return same[0].target
        seen = _thumbnail(pictures)
        alike = [item for item in asked if item.thumbnail.shape == seen.shape]
        distances = [float(np.sqrt(np.mean((i.thumbnail - seen) ** 2))) for i in alike]
        if not distances or min(distances) > _FAR:
            return None
        return alike[int(np.argmin(distances))].target


def _item(sample: Sample) -> _Item:
    pictures = tuple(picture.data for picture in sample.pictures)
    try:
        seen = _thumbnail(pictures)
    except ValueError:  # a damaged picture is the runner's to tell; here it is like no other
        seen = np.empty((0, 0), dtype=np.float32)
    return _Item(sample.prompt, sample.target, _hashes(pictures), seen)


def _hashes(pictures: tuple[bytes, ...]) -> tuple[str, ...]:
    return tuple(hashlib.sha256(data).hexdigest() for data in pictures)


def _thumbnail(pictures: tuple[bytes, ...]) -> NDArray[np.float32]:
    return np.concatenate([_square(data) for data in pictures], axis=1)


def _square(data: bytes) -> NDArray[np.float32]:
    try:
        with Pillow.open(io.BytesIO(data)) as opened:
            small = opened.convert("RGB").resize((_SIDE, _SIDE), Pillow.Resampling.BOX)
    except (UnidentifiedImageError, OSError, SyntaxError, Pillow.DecompressionBombError):
        raise ValueError("a picture of the request cannot be decoded") from None
    return np.asarray(small, dtype=np.float32)
