"""The report as a browser shows it: readable, self-contained, and inert whatever a model wrote."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from agent.errors import RunDirError
from agent.messages import Message, Reply, Run, Text
from agent.report import write_report
from agent.rundir import RunDir
from agent.showing import cut, thumbnail, visible
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
    pictures = first.locator("img")
    assert pictures.count() == 2
    for n in range(2):
        assert pictures.nth(n).get_attribute("src", timeout=1000)
        assert pictures.nth(n).evaluate("i => i.decode().then(() => i.naturalWidth)") == 32
    page.locator("#show-missed").check()
    visible_rows = page.locator("details.sample:visible")
    assert visible_rows.count() == 2
    assert "502 Bad Gateway" in visible_rows.nth(1).inner_text()
    page.locator("#show-lost").check()
    assert page.locator("details.sample:visible").count() == 1
    assert complaints == []


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
    assert page.locator("script, svg, iframe").count() == 0
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
    write_report(run, out, per_page=10, room=500)
    assert sorted(p.name for p in out.parent.iterdir()) == ["r-2.html", "r-3.html", "r.html"]
    page, complaints = opened(browser, out)
    assert page.locator("details.sample").count() == 10
    page.get_by_role("link", name="page 3").click()
    assert page.locator("details.sample").count() == 5
    page.locator("details.sample").last.locator("summary").first.click()
    image = page.locator("details.sample").last.locator("img").last
    assert str(image.get_attribute("src")).startswith("../run/images/")
    assert image.evaluate("i => i.decode().then(() => i.naturalWidth)") == 32
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
    small = thumbnail(png(size=(2000, 1000)))
    assert small.startswith(b"\xff\xd8")
    assert len(small) < 10_000
