"""Reasoning that stands in a reply's text, told apart from what the model says to us.

Pure, linear in the length of the text, never raises.
"""

from __future__ import annotations

import re

_NAMES = r"(?:seed:)?(?:think(?:ing)?|thought|reasoning)"
_TAG = re.compile(
    rf"<(?:/\s{{0,9}})?{_NAMES}(?:\s[^<>/]{{0,100}})?>|\[/?think\]|◁/?think▷"
    r"|<\|(?:begin|end)_of_thought\|>",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|channel\|>")
_HIDDEN = re.compile(r"\s*analysis\b[^<>]{0,80}<\|message\|>")


def strip_reasoning(text: str) -> tuple[str, str | None]:
    """The visible text and the reasoning that stood inline (None where there was none).

    Paired `<think>` blocks, all up to the last unpaired `</think>`, and an unclosed `<think>` with
    everything after it are reasoning; so are other families' spellings of that tag, and gpt-oss's
    analysis channel. A block that was opened twice and closed once ends where it was closed: models
    name the tag while they think.
    """
    text, analysis = _without_analysis(text)
    tags = list(_TAG.finditer(text))
    if not tags:
        return text, analysis
    end = len(text)
    while tags and not _closes(tags[-1]):
        end = tags.pop().start()
    depth = 0
    for tag in tags:
        depth = max(depth + (-1 if _closes(tag) else 1), 0)
    visible, thought = _split(text, tags, end, nested=depth == 0)
    return visible, "\n".join(filter(None, [analysis, thought])) or None


def _without_analysis(text: str) -> tuple[str, str | None]:
    """The text without the analysis channel; a channel lasts until the next begins."""
    first, *channels = _CHANNEL.split(text)
    shown, hidden = [first], list[str]()
    for channel in channels:
        head = _HIDDEN.match(channel)
        if head is None:
            shown.append(f"<|channel|>{channel}")
        else:
            hidden.append(channel[head.end() :].partition("<|end|>")[0].strip())
    return "".join(shown), "\n".join(hidden) or None


def _closes(tag: re.Match[str]) -> bool:
    return tag.group()[1] == "/" or tag.group().startswith("<|end")


def _split(
    text: str, tags: list[re.Match[str]], end: int, *, nested: bool
) -> tuple[str, str | None]:
    pieces: list[tuple[str, bool]] = []
    depth, start, hidden = 0, 0, 0
    for tag in tags:
        pieces.append((text[start : tag.start()], depth == 0))
        start = tag.end()
        if not _closes(tag):
            depth = depth + 1 if nested else 1
        elif depth:
            depth -= 1
        else:
            hidden = len(pieces)
    pieces.append((text[start:end], True))
    pieces.append((_TAG.sub("", text[end:]), False))
    visible = [piece for at, (piece, shown) in enumerate(pieces) if shown and at >= hidden]
    thought = [piece for at, (piece, shown) in enumerate(pieces) if not shown or at < hidden]
    return "".join(visible), "".join(thought).strip() or None
