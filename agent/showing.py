"""Text of a record made safe and short enough to stand in a page or on a terminal.

What a reader could not see or would be misled by (control characters, bidirectional overrides) is
made visible; escaping is the template's.
"""

from __future__ import annotations

import re

LONGEST = 20_000
"""Characters of one block; the record has the rest."""
_INVISIBLE = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff\\ud800-\\udfff]"
)


def visible(text: str) -> str:
    """The text with every control, override and lone surrogate written out, as `\\u202e`.

    Carriage returns before a newline are dropped; escape sequences of a terminal stay harmless.
    """
    return _INVISIBLE.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cut(text: str, longest: int = LONGEST) -> str:
    """At most so many characters, head and tail, with the number left out between."""
    if len(text) <= longest:
        return text
    half = longest // 2
    missing = len(text) - 2 * half
    return f"{text[:half]}\n… {missing} characters are only in the record …\n{text[-half:]}"
