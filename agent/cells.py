"""A program in cells, as editors write it: a line that begins with `# %%` (or `#%%`) starts one."""

from __future__ import annotations

import re

_MARK = re.compile(r"^# ?%%.*(?:\n|\Z)", re.MULTILINE)


def split_cells(text: str) -> list[str]:
    """The cells without their marks. Text before the first mark is a cell unless it is blank; after
    a mark even an empty cell counts."""
    first, *rest = _MARK.split(text.replace("\r\n", "\n"))
    return ([first] if first.strip() else []) + rest
