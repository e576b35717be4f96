"""What a cell has put out so far, as a notebook would show it now.

Text, pictures and errors in order; carriage returns, `clear_output` and updates applied; equal
pictures collapsed; capped while the cell runs, head and tail kept. Memory stays bounded however
much is printed. Pure: no clock, no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .items import Failure, Gap, Item, Picture, Slot, Text
from .terminal import Fold, encodable, middle_cut, plain

MAX_ITEMS = 2000
"""Pieces kept of one cell; a loop that displays for ever stops growing here."""
TRACEBACK_CHARS = 8000
MESSAGE_CHARS = 2000
MAX_FAILURES = 4
"""A cell ends by one exception; more come of cells that it runs itself."""


def one_name(name: str) -> str:
    """An exception's name as it is shown."""
    return encodable(plain(name))[:200]


class Screen:
    """The outputs of one cell."""

    def __init__(self, max_chars: int, max_pictures: int) -> None:
        self._max_chars = max_chars
        self._max_pictures = max_pictures
        self.items: list[Item] = []
        self._clear_waits = False
        self.dropped_pictures = 0
        self.dropped_other = 0
        """Characters cut out of single values and tracebacks."""

    # --- what happens -------------------------------------------------------------------------

    def write(self, name: str, text: str) -> None:
        """Text arrived on a stream."""
        last = self.items[-1] if self.items else None
        if not isinstance(last, Text) or last.name != name or last.fold is None:
            if not text:
                return
            last = Text(name, fold=Fold())
            self._append(last)
        assert last.fold is not None
        last.text += last.fold.feed(text)
        if self._chars() > 2 * self._max_chars:
            self._trim()

    def expect(self, message: str) -> None:
        """A message with this id was sent now; what it carries belongs here."""
        self._make_room()
        self._settle_text()
        self.items.append(Slot(message))

    def fill(self, message: str, item: Item) -> None:
        """The expected message came."""
        if isinstance(item, Text):
            limit = max(200, self._max_chars)
            item.text, gone = middle_cut(encodable(plain(item.text)), limit)
            self.dropped_other += gone
        index = self._slot(message)
        if index is None:
            self._append(item)
        else:
            self.items[index] = item
            self._settle()
        if isinstance(item, Picture):
            self._limit_pictures()

    def forget(self, message: str) -> None:
        """The expected message shows nothing."""
        if (index := self._slot(message)) is not None:
            del self.items[index]

    def clear(self, message: str, *, wait: bool) -> None:
        """`clear_output`; with `wait` only when something follows."""
        index = self._slot(message)
        if index is None:
            index = len(self.items)
            self.items.append(Slot(message))
        if wait:
            self.items[index] = Slot(message, clears=True)
            self._clear_waits = True
            self._settle()
        else:
            self._clear_through(index)

    def update(self, message: str, item: Text | Picture) -> None:
        """New content for an earlier display; one from another cell is shown once, here."""
        for index, old in enumerate(self.items):
            if isinstance(old, Text | Picture) and old.display_id == item.display_id:
                self.items[index] = item
                self.forget(message)
                return
        self.fill(message, item)

    def fail(self, message: str, name: str, value: str, traceback: str) -> None:
        """An exception reached the top."""
        value, gone = middle_cut(encodable(plain(value)), MESSAGE_CHARS)
        lines, more = middle_cut(encodable(plain(traceback)), TRACEBACK_CHARS)
        self.dropped_other += gone + more
        self.fill(message, Failure(one_name(name), value, lines))
        self._limit_failures()

    @property
    def failures(self) -> list[str]:
        """Names of the exceptions that are shown."""
        return [item.name for item in self.items if isinstance(item, Failure)]

    def show(self, data: bytes) -> None:
        """A picture that came by another way (a saved file)."""
        self._append(Picture(data))
        self._limit_pictures()

    # --- what is to be seen -------------------------------------------------------------------

    def finish(self) -> None:
        """No more will come: cut to size, drop what never arrived."""
        self._settle_text()
        self.items = [item for item in self.items if not isinstance(item, Slot)]
        self._limit_pictures()
        if self._chars() > self._max_chars:
            self._trim()

    @property
    def dropped_chars(self) -> int:
        return self.dropped_other + sum(i.chars for i in self.items if isinstance(i, Gap))

    def pictures(self) -> list[Picture]:
        """Those that are shown: each once."""
        seen: dict[str, Picture] = {}
        for item in self.items:
            if isinstance(item, Picture):
                seen.setdefault(item.digest, item)
        return list(seen.values())

    def outputs(self, full_text: str | None) -> list[dict[str, Any]]:
        """The frames' `outputs`: pictures by digest, neighbours of one stream merged.

        `full_text` names the file with everything, for the mark where text was cut out.
        """
        merged: list[dict[str, Any]] = []
        for output in self._render(full_text):
            last = merged[-1] if merged else None
            if last and output["type"] == "stream" and last.get("name") == output["name"]:
                last["text"] += output["text"]
            else:
                merged.append(output)
        return merged

    def _render(self, full_text: str | None) -> Iterator[dict[str, Any]]:
        shown: set[str] = set()
        stream = "stdout"
        for item in self.items:
            if isinstance(item, Text) and item.name == "value":
                if item.text:
                    yield {"type": "value", "text": item.text}
            elif isinstance(item, Text):
                stream = item.name
                if item.whole:
                    yield {"type": "stream", "name": stream, "text": item.whole}
            elif isinstance(item, Gap):
                where = f"; the whole text is in {full_text}" if full_text else ""
                mark = f"\n[… {item.chars} characters omitted{where} …]\n"
                yield {"type": "stream", "name": stream, "text": mark}
            elif isinstance(item, Picture) and item.digest not in shown:
                shown.add(item.digest)
                yield {"type": "picture", "digest": item.digest}
            elif isinstance(item, Failure):
                yield {
                    "type": "error",
                    "name": item.name,
                    "message": item.message,
                    "traceback": item.traceback,
                }

    # --- inside -------------------------------------------------------------------------------

    def _append(self, item: Item) -> None:
        self._make_room()
        self._settle_text()
        self.items.append(item)
        self._settle()

    def _settle_text(self) -> None:
        """The last line of the last text can no longer be redrawn: it counts from now on."""
        last = self.items[-1] if self.items else None
        if isinstance(last, Text) and last.fold is not None:
            last.text, last.fold = last.whole, None

    def _make_room(self) -> None:
        """Takes one out of the middle when full; a picture or piece of text is counted."""
        if len(self.items) < MAX_ITEMS:
            return
        item = self.items.pop(MAX_ITEMS // 2)
        if isinstance(item, Picture):
            self.dropped_pictures += 1
        elif isinstance(item, Text):
            self.dropped_other += len(item.whole)

    def _slot(self, message: str) -> int | None:
        for index in range(len(self.items) - 1, -1, -1):
            item = self.items[index]
            if isinstance(item, Slot) and item.message == message:
                return index
        return None

    def _settle(self) -> None:
        """Applies the last waiting clear_output that something follows."""
        if not self._clear_waits:
            return
        for index in range(len(self.items) - 2, -1, -1):
            item = self.items[index]
            if isinstance(item, Slot) and item.clears:
                if any(not isinstance(later, Slot) for later in self.items[index + 1 :]):
                    self._clear_through(index)
                    self._clear_waits = any(isinstance(i, Slot) and i.clears for i in self.items)
                break

    def _clear_through(self, index: int) -> None:
        del self.items[: index + 1]
        self.dropped_pictures = 0
        self.dropped_other = 0

    def _limit_pictures(self) -> None:
        """Keeps the first half and the latest ones."""
        kept: set[str] = set()
        places: list[int] = []
        for index, item in enumerate(self.items):
            if isinstance(item, Picture):
                if item.digest not in kept:
                    places.append(index)
                kept.add(item.digest)
        while len(places) > self._max_pictures:
            place = places.pop(self._max_pictures // 2)
            gone = self.items[place]
            assert isinstance(gone, Picture)
            self.items = [
                i for i in self.items if not (isinstance(i, Picture) and i.digest == gone.digest)
            ]
            self.dropped_pictures += 1
            places = [p - (p > place) for p in places]

    def _limit_failures(self) -> None:
        """Keeps the first half and the latest ones."""
        places = [n for n, item in enumerate(self.items) if isinstance(item, Failure)]
        if len(places) > MAX_FAILURES:
            gone = self.items.pop(places[MAX_FAILURES // 2])
            assert isinstance(gone, Failure)
            self.dropped_other += len(gone.message) + len(gone.traceback)

    def _chars(self) -> int:
        return sum(len(item.text) for item in self.items if isinstance(item, Text))

    def _trim(self) -> None:
        """Cuts the middle out, so that half of the budget stays before and half after the gap."""
        head = self._max_chars // 2
        gap = next((n for n, item in enumerate(self.items) if isinstance(item, Gap)), None)
        if gap is None:
            gap = self._split(head)
        entry = self.items[gap]
        assert isinstance(entry, Gap)
        tail = sum(len(i.text) for i in self.items[gap:] if isinstance(i, Text))
        excess = tail - (self._max_chars - head)
        for item in self.items[gap:]:
            if excess <= 0:
                break
            if isinstance(item, Text):
                cut = min(excess, len(item.text))
                item.text = item.text[cut:]
                entry.chars += cut
                excess -= cut
        self.items = [i for i in self.items if not isinstance(i, Text) or i.whole or i.display_id]

    def _split(self, position: int) -> int:
        """Puts a gap at this character; returns its index."""
        for index, item in enumerate(self.items):
            if not isinstance(item, Text):
                continue
            if position < len(item.text):
                rest = Text(item.name, item.text[position:], item.fold, item.display_id)
                item.text, item.fold, item.display_id = item.text[:position], None, None
                self.items[index + 1 : index + 1] = [Gap(0), rest]
                return index + 1
            position -= len(item.text)
        self.items.append(Gap(0))
        return len(self.items) - 1
