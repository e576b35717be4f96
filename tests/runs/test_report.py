"""The report as a browser shows it: readable, self-contained, and inert whatever a model wrote."""

from __future__ import annotations

import base64
import dataclasses
import io
import os
import shutil
from collections.abc import Generator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from agent.errors import RunDirError
from agent.gallery import Gallery, side_for, small
from agent.messages import Image, Message, Reply, Run, Text
from agent.report import write_report
from agent.rundir import RunDir
from agent.showing import cut, visible
from agent.stats import Item
from agent.trajectory import Failure, Result, Turn
from tests.runs.results import failed, png, result

HOSTILE = (
    "<script>document.title='hacked'</script>",
    "<img src=x onerror=\"document.title='hacked'\">",
    "</pre></details></body><h1>out</h1>",
    '"><svg onload="document.title=\'hacked\'">',
    "{{ 7 * 7 }}{% raw %}",
    "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x00\u202eevil\u202c\u200b",
    "javascript:alert(1)",
)


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        if os.environ.get("POT_REQUIRE_BROWSER") == "1":
            pytest.fail("a system Chromium is required here")
        pytest.skip("no system Chromium; install one (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


def made(folder: Path, results: Sequence[Result], more: int = 0) -> RunDir:
    run = RunDir.create(folder)
    config = {"model": "m", "benchmark": "cwi", "arm": "code", "dialect": "tools"}
    run.write_json("config.json", {"created": "2026", "config": config, "versions": {}})
    owed = [Item(r.id, r.repeat, r.task, r.group, r.difficulty) for r in results]
    run.write_owed([*owed, *(Item(f"later/{n}", 0, "t", "g", "easy") for n in range(more))])
    for one in results:
        run.write(one)
    return run


def opened(browser: Browser, path: Path) -> tuple[Page, list[str]]:
    page, complaints = browser.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda r: complaints.append(r.url) if r.url.startswith("http") else None)
    page.goto(path.resolve().as_uri())
    return page, complaints


@pytest.mark.browser
def test_table_turns_and_pictures_are_there(browser: Browser, tmp_path: Path) -> None:
    wrong = result("a/test/1", value=0, answer="1, 2", difficulty="hard")
    lost = failed("a/test/2")
    run = made(tmp_path / "run", [result("a/test/0"), wrong, lost], more=1)
    page, complaints = opened(browser, write_report(run))
    assert page.title() == "m on cwi"
    headline = page.locator(".headline").inner_text()
    assert "50.0" in headline
    assert "1 of 2 scored samples are correct" in headline
    assert "2 of 4 owed samples have no score (1 model_api, 1 not run)" in headline
    assert "25.0 to 75.0 %" in headline
    total = page.locator("tr.all td").all_inner_texts()
    assert total[1] == "2/4"
    assert page.locator("details.sample").count() == 3
    first = page.locator("details.sample").first
    assert not first.locator("pre").first.is_visible()
    first.locator("summary").first.click()
    text = first.inner_text()
    for expected in ("12, 7", "image_1.png: 64×48 px, sent at 32×24", "print(1)", "answered"):
        assert expected in text
    assert "1 (correct): count: 12, 7 expected" in text
    pictures = first.locator("svg.pic")
    assert pictures.count() == 2
    for n, colour in enumerate([(200, 30, 30), (0, 120, 0)]):
        assert looks(pictures.nth(n)) == (32, 24, colour)
    assert looks(first.locator("svg.small"))[2] == (200, 30, 30)
    page.locator("#show-missed").check()
    visible_rows = page.locator("details.sample:visible")
    assert visible_rows.count() == 2
    assert "502 Bad Gateway" in visible_rows.nth(1).inner_text()
    page.locator("#show-lost").check()
    assert page.locator("details.sample:visible").count() == 1
    assert complaints == []


def looks(picture: Locator) -> tuple[int, int, tuple[int, int, int]]:
    """Width, height and the colour in the middle, as the browser paints it."""
    picture.scroll_into_view_if_needed(timeout=5000)
    with Pillow.open(io.BytesIO(picture.screenshot(timeout=5000))) as shot:
        rgb = shot.convert("RGB")
        red, green, blue = np.asarray(rgb)[rgb.height // 2, rgb.width // 2].tolist()
    box = picture.bounding_box()
    assert box
    return round(box["width"]), round(box["height"]), (red, green, blue)


@pytest.mark.browser
def test_a_picture_stands_in_the_page_once(browser: Browser, tmp_path: Path) -> None:
    run = made(tmp_path / "run", [result("a", repeat) for repeat in range(6)])
    path = write_report(run)
    page, complaints = opened(browser, path)
    assert page.locator("details.sample").count() == 6
    assert page.locator("svg.pic").count() == 12
    stored = page.locator("svg.store image")
    assert stored.count() == 3, "two pictures and one preview"
    assert path.read_text("utf-8").count("data:image/png") == 2
    last = page.locator("details.sample").last
    last.locator("summary").first.click()
    assert looks(last.locator("svg.pic").last) == (32, 24, (0, 120, 0))
    assert complaints == []


@pytest.mark.browser
def test_on_a_phone_nothing_is_wider_than_the_page(browser: Browser, tmp_path: Path) -> None:
    long = "a_task_of_a_name_that_is_as_long_as_any"
    results = [
        result(f"{long}/{tier}{n}", task=f"{long}{n}", difficulty=tier)
        for n in range(2)
        for tier in ("easy", "medium", "hard", "expert")
    ]
    wide = png(size=(900, 300))
    first = results[0].trajectory
    assert first
    image = Image(wide, "image/png", 900, 300, "image_1.png", "prompt", 900, 300)
    shown = (Message("user", (Text("x" * 500), image)),)
    trajectory = dataclasses.replace(first, prompt=shown)
    results[0] = dataclasses.replace(results[0], trajectory=trajectory)
    page, _ = opened(browser, write_report(made(tmp_path / "run", results)))
    page.set_viewport_size({"width": 360, "height": 780})
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for cell in page.locator("tr.task").first.locator("td").all():
        box = cell.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    assert page.locator("svg.pic").first.bounding_box()


@pytest.mark.browser
def test_hostile_text_is_inert_and_seen(browser: Browser, tmp_path: Path) -> None:
    results: list[Result] = []
    for number, text in enumerate(HOSTILE):
        base = result(f"{number} {text}".replace("\x00", ""), answer=text, task=f"t{text[:20]}")
        assert base.trajectory
        turn = Turn(
            Reply(text, reasoning=text, refusal=text, finish_reason=text),
            (Run(text),),
            (),
            (Message("tool", (Text(text),), tool_call_id="c"),),
        )
        trajectory = dataclasses.replace(base.trajectory, turns=(turn,))
        results.append(dataclasses.replace(base, trajectory=trajectory, target=text, group=text))
    broken = dataclasses.replace(failed("f"), failure=Failure("bug", HOSTILE[0]))
    results.append(broken)
    run = made(tmp_path / "run", results)
    path = write_report(run)
    page, complaints = opened(browser, path)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_timeout(200)
    assert page.title() == "m on cwi"
    assert page.locator("h1").count() == 1
    ours = "svg:not(.pic):not(.small):not(.store)"
    assert page.locator(f"script, iframe, {ours}, [onload], [onerror]").count() == 0
    assert page.locator("details.sample").count() == len(results)
    body = page.locator("body").inner_text()
    for text in HOSTILE[:5]:
        assert text in body
    assert "\\x1b]0;owned" in body
    assert "\\u202eevil" in body
    assert not set("\x1b\x07\x00\u202e\u200b") & set(path.read_text("utf-8"))
    assert complaints == []


@pytest.mark.browser
def test_a_large_run_gets_pages_and_pictures_beyond_the_room_are_linked(
    browser: Browser, tmp_path: Path
) -> None:
    run = made(tmp_path / "run", [result(f"a/{n}") for n in range(25)])
    out = tmp_path / "elsewhere" / "r.html"
    out.parent.mkdir()
    write_report(run, out, per_page=10, room=150)
    assert sorted(p.name for p in out.parent.iterdir()) == ["r-2.html", "r-3.html", "r.html"]
    page, complaints = opened(browser, out)
    assert page.locator("details.sample").count() == 10
    page.get_by_role("link", name="page 3").click()
    assert page.locator("details.sample").count() == 5
    page.locator("details.sample").last.locator("summary").first.click()
    image = page.locator("details.sample").last.locator("img").last
    assert str(image.get_attribute("src")).startswith("../run/images/")
    assert image.evaluate("i => i.decode().then(() => i.naturalWidth)") == 32
    assert "pictures are left out to keep this page small" in page.locator("body").inner_text()
    assert complaints == []


def test_a_run_without_records_and_one_that_is_damaged(tmp_path: Path) -> None:
    run = made(tmp_path / "run", [], more=3)
    assert "No sample has a record yet" in write_report(run).read_text("utf-8")
    (run.samples / "x.0.json").write_text("{")
    with pytest.raises(RunDirError, match=r"x\.0\.json"):
        write_report(run)
    with pytest.raises(RunDirError, match=r"cannot be written"):
        write_report(made(tmp_path / "b", []), tmp_path / "no" / "folder.html")


def test_long_text_is_cut_and_large_pictures_shrink() -> None:
    text = cut("a" * 50_000 + "b" * 50_000)
    assert len(text) < 20_100
    assert text.startswith("a")
    assert text.endswith("b")
    assert "80000 characters are only in the record" in text
    assert visible("a\tb\r\nc\rd") == "a\tb\nc\\x0dd"
    shrunk = small(png(size=(2000, 1000)), 512)
    assert shrunk.startswith(b"\xff\xd8")
    assert len(shrunk) < 10_000


def noisy(number: int) -> bytes:
    """A photograph's worth of bytes: 256 × 256 that do not compress."""
    values = np.random.default_rng(number).integers(0, 256, (256, 256, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Pillow.fromarray(values).save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()


def test_a_page_never_takes_more_than_its_room(tmp_path: Path) -> None:
    room = 400_000
    (tmp_path / "images").mkdir()
    pictures = {f"{number:02x}{62 * '0'}.png": noisy(number) for number in range(40)}
    for name, data in pictures.items():
        (tmp_path / "images" / name).write_bytes(data)
    side = side_for(tmp_path / "images", room)
    assert side == 128, "40 of them fit at no other size"
    gallery = Gallery(tmp_path / "images", tmp_path, side, room, text_room=30_000)
    for name, data in pictures.items():
        for _ in range(3):
            assert gallery.source(name, data, "image/png", (256, 256))
            gallery.preview(name, data, "image/png", (256, 256))
    assert sum(len(one.url) for one in gallery.embedded.values()) <= room
    texts = [gallery.text("<" * 10_000) for _ in range(10)]
    assert [len(text) for text in texts[:1]] == [10_000]
    assert all(len(text) < 500 for text in texts[1:])
    assert [note.split(";")[0] for note in gallery.notices()] == [
        "Pictures are compressed here, to at most 128 px",
        f"{len(gallery.left_out)} pictures are left out to keep this page small",
        "Long texts are cut to keep this page small",
    ]
    assert 0 < len(gallery.left_out) < 40


def test_what_fits_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    data = noisy(1)
    (tmp_path / "images" / "a.png").write_bytes(data)
    assert side_for(tmp_path / "images", 10_000_000) is None
    gallery = Gallery(tmp_path / "images", tmp_path, None)
    assert gallery.source("a" * 64 + ".png", data, "image/png", (256, 256)) == f"#p-{'a' * 32}"
    (one,) = gallery.embedded.values()
    assert base64.b64decode(one.url.removeprefix("data:image/png;base64,")) == data
    assert list(gallery.notices()) == []


def test_the_first_message_of_each_kind_of_failure_is_told(tmp_path: Path) -> None:
    other = dataclasses.replace(failed("c"), failure=Failure("input", "image_1.png: <torn>"))
    page = write_report(made(tmp_path / "run", [result("a"), failed("b"), other])).read_text(
        "utf-8"
    )
    assert '<p class="why">model_api: 502 Bad Gateway after 4 tries</p>' in page
    assert '<p class="why">input: image_1.png: &lt;torn&gt;</p>' in page
