"""Text as a terminal shows it, outputs as a notebook shows them, both bounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.supervisor import bundle
from sandbox.supervisor.items import Picture, Text
from sandbox.supervisor.screen import MAX_ITEMS, Screen
from sandbox.supervisor.terminal import LONG_LINE, Fold, encodable, middle_cut, plain


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\ntext", "plain\ntext"),
        ("10%\r20%\r100%\n", "100%\n"),
        ("long line\rshort", "shortline"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("abc\b\bX", "aXc"),
        ("bar 1\r\x1b[Kbar\n", "bar\n"),
        ("bar 1\x1b[2K\rbar\n", "bar  \n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07a\x1b]8;;u\x1b\\b", "ab"),
        ("\x1b(Ba\x1b=b\x1bPq\x1b\\c", "abc"),
        ("a\x00\x07\x0b\x0c\x7f\x85b", "ab"),
        ("tab\tkept", "tab\tkept"),
        ("unfinished \x1b[3", "unfinished "),
        ("é\r漢字", "漢字"),
    ],
)
def test_folding(written: str, shown: str) -> None:
    assert plain(written) == shown


@given(
    st.text(st.sampled_from("ab\r\n\b\t\x1b[]K2;m\x07\\8"), max_size=60),
    st.lists(st.integers(1, 7), min_size=1, max_size=9),
)
def test_folding_does_not_depend_on_the_cuts(text: str, cuts: list[int]) -> None:
    fold = Fold()
    shown = ""
    position = 0
    while position < len(text):
        size = cuts[position % len(cuts)]
        shown += fold.feed(text[position : position + size])
        position += size
    assert shown + fold.line == plain(text)
    assert "\x1b" not in shown


def test_a_line_without_end_is_passed_on() -> None:
    fold = Fold()
    passed = "".join(fold.feed("x" * 1000) for _ in range(100))
    assert len(passed) + len(fold.line) == 100_000
    assert len(fold.line) <= LONG_LINE


@given(st.text(max_size=50), st.integers(0, 60))
def test_middle_cut(text: str, limit: int) -> None:
    cut, gone = middle_cut(text, limit)
    assert gone == max(0, len(text) - limit)
    if gone:
        assert cut.startswith(text[: limit // 2])
        assert str(gone) in cut
    else:
        assert cut == text


def test_lone_surrogates_are_spelled_out() -> None:
    assert encodable("a\ud83db") == "a\\ud83db"


def screen(chars: int = 100, pictures: int = 4) -> Screen:
    return Screen(chars, pictures)


def shown(outputs: Screen) -> list[Any]:
    outputs.finish()
    return [
        o.get("text") or o.get("digest", "")[:4] or o.get("name") for o in outputs.outputs(None)
    ]


def test_neighbours_merge_and_streams_do_not() -> None:
    out = screen()
    for name, text in [("stdout", "a"), ("stdout", "b\n"), ("stderr", "c"), ("stdout", "d")]:
        out.write(name, text)
    assert shown(out) == ["ab\n", "c", "d"]


def test_a_message_takes_the_place_where_it_was_sent() -> None:
    out = screen()
    out.write("stdout", "before\n")
    out.expect("m1")
    out.write("stdout", "after\n")
    out.fill("m1", Text("value", "value"))
    assert shown(out) == ["before\n", "value", "after\n"]


def test_what_was_announced_and_never_came_leaves_nothing() -> None:
    out = screen()
    out.expect("m1")
    out.write("stdout", "text")
    assert shown(out) == ["text"]


def test_clear_output_at_once_and_when_something_follows() -> None:
    out = screen()
    out.write("stdout", "old")
    out.expect("c1")
    out.write("stdout", "new")
    out.clear("c1", wait=False)
    assert shown(out) == ["new"]
    out = screen()
    out.write("stdout", "old")
    out.expect("c1")
    out.clear("c1", wait=True)
    assert shown(out) == ["old"]
    out = screen()
    out.write("stdout", "old")
    out.expect("c1")
    out.clear("c1", wait=True)
    out.write("stdout", "new")
    assert shown(out) == ["new"]


def test_cleared_pictures_do_not_count() -> None:
    out = screen(pictures=2)
    for n in range(10):
        out.clear(f"c{n}", wait=True)
        out.fill(f"m{n}", Picture(bytes([n])))
    assert len(shown(out)) == 1
    assert out.dropped_pictures == 0


def test_updates_replace_and_an_unknown_display_is_shown_once() -> None:
    out = screen()
    out.fill("m1", Text("value", "old", display_id="d"))
    out.write("stdout", "text")
    out.update("m2", Text("value", "new", display_id="d"))
    out.update("m3", Text("value", "from before", display_id="e"))
    out.update("m4", Text("value", "newer", display_id="e"))
    assert shown(out) == ["new", "text", "newer"]


def test_equal_pictures_collapse() -> None:
    out = screen()
    for _ in range(3):
        out.fill("", Picture(b"same"))
    assert len(shown(out)) == 1
    assert out.dropped_pictures == 0


def test_the_first_half_and_the_last_pictures_stay() -> None:
    out = screen(pictures=4)
    for n in range(10):
        out.fill(str(n), Picture(bytes([n])))
    kept = [item.data[0] for item in out.items if isinstance(item, Picture)]
    assert kept == [0, 1, 8, 9]
    assert out.dropped_pictures == 6


@given(
    st.lists(
        st.tuples(st.sampled_from(["stdout", "stderr"]), st.text(st.sampled_from("ab\n"))),
        max_size=60,
    ),
    st.integers(10, 80),
)
def test_text_is_bounded_and_every_character_is_accounted_for(
    writes: list[tuple[str, str]], limit: int
) -> None:
    out = screen(chars=limit)
    for name, text in writes:
        out.write(name, text)
        assert sum(len(i.text) for i in out.items if isinstance(i, Text)) <= 2 * limit
    out.finish()
    kept = "".join(item.text for item in out.items if isinstance(item, Text))
    everything = "".join(text for _, text in writes)
    assert len(kept) <= limit
    assert len(kept) + out.dropped_chars == len(everything)
    assert kept.startswith(everything[: len(kept) // 2]) or not kept
    assert everything.endswith(kept[len(kept) - limit // 2 :]) or not out.dropped_chars


def test_the_mark_says_how_much_is_gone_and_where_all_of_it_is() -> None:
    out = screen(chars=10)
    out.write("stdout", "0123456789" * 10)
    out.finish()
    (text,) = [output["text"] for output in out.outputs("/tmp/all.txt")]
    assert text.startswith(
        "01234\n[… 90 characters omitted; the whole text is in /tmp/all.txt …]\n"
    )
    assert text.endswith("56789")


def test_a_loop_that_displays_for_ever_stays_bounded() -> None:
    out = screen()
    for n in range(3 * MAX_ITEMS):
        out.expect(str(n))
        out.fill(str(n), Text("value", "v"))
    assert len(out.items) <= MAX_ITEMS


def test_a_flood_of_errors_keeps_the_first_and_the_last() -> None:
    screen = Screen(1000, 4)
    for number in range(700):
        screen.fail(str(number), f"E{number}", "v" * 100, "t" * 1000)
    screen.finish()
    assert screen.failures == ["E0", "E1", "E698", "E699"]
    assert screen.dropped_chars == 696 * 1100


def test_long_errors_are_cut() -> None:
    out = screen()
    out.fail("m", "ValueError", "x" * 100_000, "\x1b[31m" + "y" * 100_000)
    (failure,) = out.outputs(None)
    assert len(failure["message"]) < 3000
    assert len(failure["traceback"]) < 9000
    assert out.dropped_chars > 180_000


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        ({"text/plain": "42"}, "42", None),
        ({"text/plain": "<X object>", "text/html": "h" * 2000}, "", "HTML output omitted (2 kB)."),
        ({"text/plain": "a b\n1 2", "text/html": "<table>"}, "a b\n1 2", None),
        ({"text/plain": "<Markdown object>", "text/markdown": "**b**"}, "**b**", None),
        ({"image/svg+xml": "<svg/>"}, "", "SVG output omitted (1 kB)."),
        ({"image/png": "not base64!", "text/plain": "p"}, "p", None),
        ({"image/png": 5, "text/plain": ["no"]}, "", None),
        ({}, "", None),
    ],
)
def test_one_representation(data: dict[str, Any], text: str, note: str | None) -> None:
    item, said = bundle.choose(data, None)
    assert isinstance(item, Text)
    assert (item.text, said) == (text, note)


def test_a_picture_wins() -> None:
    item, note = bundle.choose({"text/plain": "x", "image/jpeg": "YQ==", "image/png": "Yg=="}, "d")
    assert isinstance(item, Picture)
    assert (item.data, item.display_id, note) == (b"b", "d", None)
