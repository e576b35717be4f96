"""The one way a command ends on bad input: one line on stderr, no traceback, an exit code."""

from __future__ import annotations


class Problem(Exception):
    """What was expected, found, what to do; `code` is the exit code: 2 bad input, 3 nothing ran."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code
