"""What the model is told: the system prompt, the question with its pictures, the last-reply line.

Built from the sample, the box's facts and the config alone, so that equal inputs give equal bytes
(the reply cache and a paired comparison of arms depend on that).
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.config import RunConfig
from agent.messages import Dialect, Message, Part, Text
from agent.pictures import Prepared

PACKAGES = "numpy, opencv (cv2), scikit-image, scipy, matplotlib, Pillow, scikit-learn"
"""In every image that `pot image build` makes, and in the embedded sandbox."""

ROLE = "You answer questions about pictures. Answers are checked by a program, so precision counts."
ANSWER = (
    "Give the final answer as <answer>…</answer>, in exactly the form that the question asks for."
)
LAST_REPLY = (
    "This is your last reply: give the answer now as <answer>…</answer>. Code in it is not run."
)


def system(config: RunConfig, dialect: Dialect, data_dir: str) -> Message:
    """The system message of one sample."""
    parts = [config.system_prompt or ROLE]
    if config.arm != "look":
        parts += [_sandbox(config, data_dir), dialect.instructions]
    parts.append(ANSWER)
    if config.skills:
        parts.append("Notes that may help:\n" + "\n\n".join(config.skills))
    return Message("system", (Text("\n\n".join(parts)),))


def _sandbox(config: RunConfig, data_dir: str) -> str:
    return (
        "You can run Python in a stateful Jupyter kernel: variables stay from one cell to the "
        f"next. Installed: {PACKAGES}. There is no network. The pictures are read-only files in "
        f"{data_dir}; the current folder is writable. A cell may take {config.cell_seconds:g} s. "
        "Its text, its errors and every picture it shows (plt.show(), display(image), image files "
        "saved in the current folder) come back to you. "
        f"You have {config.max_turns} replies in all; the last one must hold the answer."
    )


def question(
    prompt: str, pictures: Sequence[Prepared], config: RunConfig, data_dir: str
) -> Message:
    """The user message: the question, then each picture under its coordinate line."""
    parts: list[Part] = [Text(prompt)]
    for picture in pictures:
        image = picture.image
        path = f"{data_dir}/{image.name}"
        if config.arm == "look":
            parts += [Text(f"{image.name}: {picture.text}"), image]
        elif config.arm == "blind":
            size = f"{image.original_width}×{image.original_height} px"
            parts.append(Text(f"{image.name}: {path}, {size}, not shown to you"))
        else:
            parts += [Text(f"{image.name}: {path}, {picture.text}"), image]
    if config.max_turns == 1:
        parts.append(Text(LAST_REPLY))
    return Message("user", tuple(parts))


def replies_left(count: int) -> str:
    """The line that ends every observation."""
    return LAST_REPLY if count == 1 else f"{count} replies left."
