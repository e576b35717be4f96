"""Folds text as a terminal would show it: carriage returns, backspaces and erasures applied, escape
sequences and control characters gone. Pure; works on a stream cut anywhere."""

from __future__ import annotations

import re

LONG_LINE = 4096
"""A line longer than this is passed on while it is written and can no longer be redrawn."""

_ESCAPE = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, hyperlinks
    r"|[PX^_][^\x1b]*\x1b\\"  # DCS and its like
    r"|[ -/]*[0-Z\\`-~])"
)
_TOKEN = re.compile(rf"({_ESCAPE}|[\x00-\x08\x0a-\x1f\x7f-\x9f])")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|[ -/]*)\Z")
_ERASE = re.compile(r"\x1b\[([0-2]?)K\Z")
_MAX_HELD = 4096
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Fold:
    """One stream. `feed` returns the lines that are final; `line` is the one still being drawn."""

    __slots__ = ("_column", "_held", "line")

    def __init__(self) -> None:
        self.line = ""
        self._column = 0
        self._held = ""

    def feed(self, text: str) -> str:
        text = self._held + text
        self._held = ""
        if "\x1b" in text and (match := _UNFINISHED.search(text, max(0, len(text) - _MAX_HELD))):
            self._held = match.group()
            text = text[: match.start()]
        if self._column == len(self.line) and not _SPECIAL.search(text):
            return self._plain(text)
        done: list[str] = []
        for index, token in enumerate(_TOKEN.split(text)):
            if index % 2 == 0:
                self._write(token)
            elif token == "\n":
                done.append(self.line + "\n")
                self.line, self._column = "", 0
            else:
                self._control(token)
            if len(self.line) > LONG_LINE and self._column == len(self.line):
                done.append(self.line)
                self.line, self._column = "", 0
        return "".join(done)

    def _plain(self, text: str) -> str:
        """The common case, a whole chunk at once: nothing but printable text and newlines."""
        lines, newline, rest = text.rpartition("\n")
        done = self.line + lines + newline if newline else ""
        self.line = rest if newline else self.line + rest
        if len(self.line) > LONG_LINE:
            done, self.line = done + self.line, ""
        self._column = len(self.line)
        return done

    def _write(self, text: str) -> None:
        if not text:
            return
        end = self._column + len(text)
        self.line = self.line[: self._column] + text + self.line[end:]
        self._column = end

    def _control(self, token: str) -> None:
        if token == "\r":
            self._column = 0
        elif token == "\b":
            self._column = max(0, self._column - 1)
        elif erase := _ERASE.match(token):
            mode = erase.group(1) or "0"
            keep_left = "" if mode == "2" else self.line[: self._column]
            if mode == "1":
                keep_left = " " * self._column + self.line[self._column :]
            self.line = keep_left.ljust(self._column) if mode == "2" else keep_left
            self._column = min(self._column, len(self.line))


def plain(text: str) -> str:
    """A finished text, folded."""
    fold = Fold()
    return fold.feed(text) + fold.line


def encodable(text: str) -> str:
    """The text with lone surrogates spelled out, so that it is valid UTF-8 everywhere."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def middle_cut(text: str, limit: int) -> tuple[str, int]:
    """Head and tail of a text that is too long, and how many characters are gone."""
    if len(text) <= limit:
        return text, 0
    head = limit // 2
    tail = limit - head
    gone = len(text) - limit
    mark = f"\n[… {gone} characters omitted …]\n"
    return text[:head] + mark + text[len(text) - tail :], gone
