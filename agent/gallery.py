"""The pictures and long texts of one report page, and the room that is left for them.

A picture stands in the page once, however often it is shown: under an id made of its hash, which
every place refers to. Where not all fit whole they are shrunk; when the room is used up, the rest
is referred to in the run's `images/`. `notices` says what a reader misses.
"""

from __future__ import annotations

import base64
import html
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image as Pillow

from agent.showing import LONGEST, cut

ROOM = 17_000_000
"""Bytes of pictures, as text, in one page."""
TEXT_ROOM = 5_000_000
"""Bytes of text in one page, after which long blocks are cut shorter."""
SHORT = 400
"""Characters of a block then."""
SIDES = {512: 40_000, 256: 12_500, 128: 4_000}
"""Pixels of the longer side of a shrunk picture → what a photograph takes then, bytes."""
_PREVIEW = 64


@dataclass(frozen=True, slots=True)
class Embedded:
    """A picture as it stands in the page."""

    id: str
    url: str
    width: int
    height: int


@dataclass(slots=True)
class Gallery:
    images: Path
    page: Path
    """The folder of the page, which references start from."""
    side: int | None
    """Pixels of the longer side; None: pictures stay as they are."""
    room: int = ROOM
    text_room: int = TEXT_ROOM
    embedded: dict[str, Embedded] = field(default_factory=dict[str, Embedded])
    left_out: set[str] = field(default_factory=set[str])
    shrunk: bool = False
    shortened: bool = False

    def source(self, name: str, data: bytes, mime: str, size: tuple[int, int]) -> str:
        """`#id` of the picture in this page, or a relative reference where there is no room."""
        if self.side is not None and (max(size) > self.side or len(data) > SIDES[self.side]):
            self.shrunk = True
            data, mime = small(data, self.side), "image/jpeg"
        return self._put(f"p-{name[:32]}", data, mime, size) or self._refer(name)

    def preview(self, name: str, data: bytes, mime: str, size: tuple[int, int]) -> str:
        """`#id` of a very small picture for the overview; empty where there is no room."""
        key = f"v-{name[:32]}"
        if key in self.embedded:
            return f"#{key}"
        whole = self.embedded.get(self.source(name, data, mime, size)[1:])
        if whole is not None:  # shrunk already: quicker to decode
            data = base64.b64decode(whole.url.partition(",")[2])
        width, height = (max(1, round(_PREVIEW * length / max(size))) for length in size)
        return self._put(key, small(data, _PREVIEW), "image/jpeg", (width, height))

    def reference(self, name: str) -> str:
        relative = os.path.relpath(self.images / name, self.page)
        return Path(relative).as_posix()

    def text(self, text: str) -> str:
        """The text, cut where it is long, shorter when this page has much text already."""
        longest = LONGEST if self.text_room > 0 else SHORT
        self.shortened = self.shortened or (longest < LONGEST and len(text) > longest)
        shown = cut(text, longest)
        self.text_room -= len(html.escape(shown).encode("utf-8", "replace"))
        return shown

    def notices(self) -> Iterator[str]:
        """What a reader misses, a sentence each."""
        where = "in the run's images/, while this page lies beside it"
        if self.shrunk:
            yield (
                f"Pictures are compressed here, to at most {self.side} px; a click opens the whole "
                f"one {where}."
            )
        if self.left_out:
            yield (
                f"{len(self.left_out)} pictures are left out to keep this page small; they are "
                f"shown from {where.removeprefix('in ')}."
            )
        if self.shortened:
            yield "Long texts are cut to keep this page small; the records have all of them."

    def _put(self, key: str, data: bytes, mime: str, size: tuple[int, int]) -> str:
        if key not in self.embedded:
            url = f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"
            if len(url) > self.room:
                return ""
            self.room -= len(url)
            self.embedded[key] = Embedded(key, url, *size)
        return f"#{key}"

    def _refer(self, name: str) -> str:
        self.left_out.add(name)
        return self.reference(name)


def small(data: bytes, side: int) -> bytes:
    """A JPEG of at most so many pixels a side, on white where it was transparent."""
    with Pillow.open(io.BytesIO(data)) as opened:
        opened.draft("RGB", (side, side))
        picture = opened.convert("RGBA" if opened.has_transparency_data else "RGB")
    picture.thumbnail((side, side), Pillow.Resampling.BOX)
    if picture.mode == "RGBA":
        flat = Pillow.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.getchannel("A"))
        picture = flat
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=72)
    return buffer.getvalue()


def side_for(images: Path, room: int) -> int | None:
    """None where all pictures of a run fit whole, else the largest size at which they should."""
    sizes = [entry.stat().st_size for entry in os.scandir(images) if entry.is_file()]
    if sum(sizes) * 4 / 3 <= room:
        return None
    for side, usual in SIDES.items():
        if sum(min(size, usual) for size in sizes) * 4 / 3 <= room:
            return side
    return min(SIDES)
