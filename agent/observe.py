"""What the model is shown of a cell: text, pictures with their coordinate lines, what was lost.

Nothing that code printed is ever read for meaning here; pictures come from typed parts alone.
"""

from __future__ import annotations

from agent.config import RunConfig
from agent.messages import Part, Text
from agent.pictures import from_display
from sandbox.outputs import Display, Error, Execution, Stream

NOTHING = "(no output)"


def observe(execution: Execution, config: RunConfig, turn: int, first: int = 1) -> tuple[Part, ...]:
    """The parts that answer one cell. Pictures are named `output_<turn>_<n>`, n from `first` on."""
    parts: list[Part] = []
    number = first
    for output in execution.outputs:
        if isinstance(output, Display) and output.is_picture:
            parts += _picture(output, config, f"output_{turn}_{number}")
            number += 1
        else:
            parts.append(Text(_text(output)))
    if not parts and execution.status == "ok":
        parts.append(Text(NOTHING))
    parts += [Text(line) for line in _remarks(execution)]
    return _joined(parts)


def _picture(display: Display, config: RunConfig, stem: str) -> list[Part]:
    name = f"{stem}.{'png' if display.mime == 'image/png' else 'jpg'}"
    if config.arm == "blind":
        return [Text(f"[picture {name}: {display.width}×{display.height} px, not shown to you]")]
    image, text = from_display(display, name, config.max_pixels)
    return [Text(f"[picture {name}: {text}]"), image]


def _text(output: Stream | Display | Error) -> str:
    if isinstance(output, Error):
        return output.traceback or f"{output.name}: {output.message}"
    if isinstance(output, Stream) and output.name == "stderr":
        return f"[stderr]\n{output.text}"
    return output.text


def _remarks(execution: Execution) -> list[str]:
    """Everything about the cell that is not its output, a line each."""
    lines: list[str] = []
    if execution.files:
        shown = ", ".join(f"{f.path} ({f.bytes} bytes)" for f in execution.files[:20])
        more = len(execution.files) - 20
        lines.append(f"[files: {shown}{f' and {more} more' if more > 0 else ''}]")
    if execution.dropped.pictures:
        lines.append(f"[{execution.dropped.pictures} more pictures were not kept]")
    if execution.status in ("timeout", "died"):
        lines.append(f"[{_end(execution)}]")
    if execution.note:
        lines.append(f"[{execution.note}]")
    return lines


def _end(execution: Execution) -> str:
    if execution.status == "timeout":
        what = f"the cell was stopped at its time limit after {execution.seconds:.0f} s"
    else:
        what = f"the kernel died ({execution.cause or 'unknown cause'})"
    if execution.kernel == "kept":
        return f"{what}; variables are kept"
    return f"{what}; a new kernel was started and all variables are lost"


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """Neighbouring texts as one part, so that a request has no needless pieces."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text.rstrip("\n") + "\n" + part.text)
        else:
            joined.append(part)
    return tuple(joined)
