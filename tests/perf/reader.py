"""How the time to read a reply grows with its length: every mark of the grammar, repeated.

Prints for each the milliseconds at one length and the ratio to a quarter of it; 4 is linear, 16 is
quadratic. The worst come last.
"""

from __future__ import annotations

import argparse
import time

from agent.dialects.parse import describe
from agent.messages import Reply, ToolCall
from benchmarks.answers import answer_span
from benchmarks.cwi.rules import score

UNITS = (
    *(
        "<answer>",
        "</answer>",
        "&lt;answer&gt;",
        "<think>",
        "</think>",
        "<|channel|>analysis",
        "<code>",
    ),
    *(
        "<tool_call>{",
        "[TOOL_CALLS]",
        "<interpreter>",
        "```",
        "```python\n",
        "```python\nx()\n```\n",
    ),
    *(
        "```python\n'''\n```\n",
        "```\n``` a b\n",
        "> ```\n> x\n",
        "x()```\n",
        "` `` ",
        "\n",
        "{",
        "[",
    ),
    *("(", '"', '\\"', "\\", '{"a":', "print(", "1e9,", ".5", "½", "ﷺ", "x1 ", "dx=", "é"),
)


def read(text: str) -> None:
    describe(Reply(text, finish_reason="stop"))
    describe(Reply("```python\n" + text, (ToolCall("a", "python", text),)))
    answer_span(f"<answer>{text}</answer>", None)
    score("circular_shift", "1,2", text)


def best(text: str, times: int) -> float:
    """Milliseconds of this process; each time another text, since the last ones are kept."""
    taken: list[float] = []
    for number in range(times):
        begin = time.process_time()
        read(text + "!" * number)
        taken.append(time.process_time() - begin)
    return min(taken) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chars", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    rows: list[tuple[float, float, str]] = []
    for unit in UNITS:
        count = options.chars // len(unit)
        slow = best(unit * count, options.times)
        rows.append((slow / best(unit * (count // 4), options.times), slow, unit))
    for ratio, slow, unit in sorted(rows):
        print(f"{unit!r:28} {slow:8.1f} ms   ×{ratio:.1f} for 4 times the length")


if __name__ == "__main__":
    main()
