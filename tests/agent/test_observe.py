"""What the model is shown of a cell."""

from __future__ import annotations

import io

from PIL import Image as Pillow

from agent.config import RunConfig
from agent.messages import Image, Text
from agent.observe import NOTHING, observe
from sandbox.outputs import Display, Dropped, Error, Execution, File, Stream

CONFIG = RunConfig(benchmark="cwi", max_pixels=10_000)


def png(width: int, height: int) -> Display:
    buffer = io.BytesIO()
    Pillow.new("RGB", (width, height), "red").save(buffer, "PNG")
    return Display("image/png", buffer.getvalue(), width, height)


def execution(*outputs: Stream | Display | Error, **values: object) -> Execution:
    base: dict[str, object] = {
        "status": "ok", "cause": None, "kernel": "kept", "seconds": 0.1, "cpu_seconds": 0.1,
        "peak_mb": 50.0,
    }  # fmt: skip
    return Execution(outputs, **(base | values))  # pyright: ignore[reportArgumentType]


def test_nothing_printed_says_so() -> None:
    assert observe(execution(), CONFIG, 1) == (Text(NOTHING),)


def test_order_text_pictures_and_coordinate_lines() -> None:
    small, big = png(60, 40), png(400, 200)
    parts = observe(
        execution(Stream("stdout", "a\n"), small, Stream("stderr", "w\n"), big), CONFIG, 3, 2
    )
    assert [type(part) for part in parts] == [Text, Image, Text, Image]
    assert isinstance(parts[0], Text)
    assert parts[0].text == "a\n[picture output_3_2.png: 60×40 px, sent at 60×40 (scale 1)]"
    assert isinstance(parts[2], Text)
    assert parts[2].text.startswith(
        "[stderr]\nw\n[picture output_3_3.png: 400×200 px, sent at 141×70"
    )
    assert isinstance(parts[1], Image)
    assert parts[1].data == small.data
    assert isinstance(parts[3], Image)
    assert parts[3].width * parts[3].height <= 10_000


def test_blind_gets_no_pixels_back() -> None:
    parts = observe(execution(png(60, 40)), RunConfig(benchmark="cwi", arm="blind"), 1)
    assert parts == (Text("[picture output_1_1.png: 60×40 px, not shown to you]"),)


def test_what_happened_beside_the_output_is_told() -> None:
    parts = observe(
        execution(
            Stream("stdout", "before"),
            status="timeout",
            cause="deadline",
            kernel="restarted",
            seconds=30.2,
            files=(File("a.csv", 12),),
            dropped=Dropped(5, 2),
            note="the full text is in /tmp/x",
        ),
        CONFIG,
        1,
    )
    (part,) = parts
    assert isinstance(part, Text)
    assert part.text.splitlines() == [
        "before",
        "[files: a.csv (12 bytes)]",
        "[2 more pictures were not kept]",
        "[the cell was stopped at its time limit after 30 s; a new kernel was started and all "
        "variables are lost]",
        "[the full text is in /tmp/x]",
    ]


def test_death_and_kept_kernel() -> None:
    (died,) = observe(
        execution(status="died", cause="out_of_memory", kernel="restarted"), CONFIG, 1
    )
    (kept,) = observe(execution(status="timeout", cause="deadline"), CONFIG, 1)
    assert isinstance(died, Text)
    assert isinstance(kept, Text)
    assert "the kernel died (out_of_memory); a new kernel" in died.text
    assert kept.text.endswith("variables are kept]")


def test_an_error_shows_its_traceback() -> None:
    (part,) = observe(execution(Error("E", "m", "Traceback\nE: m"), status="error"), CONFIG, 1)
    assert part == Text("Traceback\nE: m")
    (part,) = observe(execution(Error("E", "m", ""), status="error"), CONFIG, 1)
    assert part == Text("E: m")
