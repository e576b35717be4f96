"""The one way a command ends on bad input: one line on stderr, no traceback, an exit code."""

from __future__ import annotations


class Problem(Exception):  # noqa: N818 - it is a message to a person, not an error class tree
    """What was expected, what was found, what to do; `code` is the exit code (2 bad input, 3 nothing could run)."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code
