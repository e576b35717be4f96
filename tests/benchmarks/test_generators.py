"""The generators: same seed same item, no shortcut left, prompts that tell all but the answer, and
reference programs that solve the items from the picture and the prompt alone."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import BenchmarkError, DataError
from benchmarks.cwi import photos
from benchmarks.cwi.item import TIERS, Draft, Task, Tier
from benchmarks.cwi.make import Item, make, order, solved_by
from benchmarks.cwi.photos import SPLITS, Photo
from benchmarks.cwi.rules import RULES, score
from benchmarks.cwi.tasks import TASKS, recognise, reference_cells, references

COCO = Path(__file__).resolve().parents[2].parent / "shared/data/photos"
SAMPLE_FOLDERS = pytest.mark.skipif(not COCO.is_dir(), reason=f"no photographs at {COCO}")


def item(task: str, number: int, split: photos.Split = "train", folder: Path | None = None) -> Item:
    return make(order(task, split, number, 5, photos.photos(folder, split)))


def draft(task: Task, tier: Tier, seed: int) -> Draft:
    found = photos.photos(None, "train")
    photo = photos.pixels(found[seed % len(found)].path)
    return task.draw(photo, np.random.default_rng(seed), tier)


@pytest.mark.parametrize("task", TASKS)
def test_same_order_same_item(task: str) -> None:
    assert item(task, 3) == item(task, 3)
    assert item(task, 3).image != item(task, 7).image


@pytest.mark.parametrize("task", TASKS)
def test_item(task: str) -> None:
    for number, tier in enumerate(TIERS):
        made = item(task, number)
        meta = json.loads(made.meta)
        assert made.id == f"{task}/train/{number}"
        assert (made.difficulty, meta["tier"]) == (tier, tier)
        assert meta["task"] == task
        assert meta["seed"] == 5
        assert meta["photos"][0] in {photo.id for photo in photos.photos(None, "train")}
        assert set(meta["rejected"]) == {"ill_posed", "shortcut"}
        assert score(task, made.answer, " ".join(map(str, meta["gold"]))).value == 1
        picture = Image.open(io.BytesIO(made.image))
        picture.load()
        assert (picture.format, picture.mode, picture.width) == ("PNG", "RGB", 480)
        assert picture.info == {}


@pytest.mark.parametrize("task", TASKS)
def test_prompt_tells_all_but_the_answer(task: str) -> None:
    for seed in range(12):
        made = draft(TASKS[task], TIERS[seed % 4], seed)
        example = re.search(r"<answer>(.*)</answer>$", made.prompt)
        assert example is not None, "a prompt ends with the answer form"
        assert score(task, made.answer, example[1]).outcome == "wrong"
        assert made.prompt.startswith(TASKS[task].opening)
        assert recognise(f"files: …\n\n{made.prompt}\n") == task
        assert not re.search(r"(?i)numpy|opencv|cv2|scikit|python|correlat", made.prompt)


def test_openings_are_unique() -> None:
    for task in TASKS.values():
        others = [other.opening for other in TASKS.values() if other is not task]
        assert task.opening.endswith(".")
        assert not any(task.opening in other or other in task.opening for other in others)
    assert recognise("What is this?") is None


@pytest.mark.parametrize("task", TASKS)
def test_no_shortcut_is_left(task: str) -> None:
    for number in range(8):
        found = photos.photos(None, "train")
        wanted = order(task, "train", number, 11, found)
        made, rejected = make(wanted), 0
        meta = json.loads(made.meta)
        rejected += meta["rejected"]["ill_posed"] + sum(meta["rejected"]["shortcut"].values())
        assert (made.ill_posed, made.shortcut) == (
            meta["rejected"]["ill_posed"],
            sum(meta["rejected"]["shortcut"].values()),
        )
        picture = np.asarray(Image.open(io.BytesIO(made.image)))
        again = Draft(picture, made.prompt, made.answer, (), meta["parameters"])
        assert TASKS[task].shortcuts(again)
        assert solved_by(TASKS[task], again) is None


@pytest.mark.parametrize("task", TASKS)
def test_every_shortcut_is_an_answer(task: str) -> None:
    made = draft(TASKS[task], "hard", 1)
    for name, answer in TASKS[task].shortcuts(made).items():
        assert score(task, made.answer, answer).outcome in ("correct", "wrong"), name


@pytest.mark.parametrize(
    ("task", "name"), [("circular_shift", "thumbnail"), ("swatch_rgb", "one gain for all channels")]
)
def test_shortcuts_catch_what_they_are_for(task: str, name: str) -> None:
    drafts = (draft(TASKS[task], "easy", seed) for seed in range(200))
    assert name in (solved_by(TASKS[task], made) for made in drafts)


def test_what_the_numbers_mean() -> None:
    shift = item("circular_shift", 0)
    parameters = json.loads(shift.meta)
    dx, dy = parameters["gold"]
    rolled = np.asarray(Image.open(io.BytesIO(shift.image))).astype(float)
    photo = photos.pixels(
        next(p.path for p in photos.photos(None, "train") if p.id == parameters["photos"][0])
    )
    back = np.roll(rolled, (-dy, -dx), axis=(0, 1))
    assert np.abs(back - photo).mean() < 5 < np.abs(rolled - photo).mean()

    crop = json.loads(item("crop_provenance", 1).meta)
    x1, y1, x2, y2 = crop["parameters"]["box_px"]
    assert crop["gold"] == [round(edge * 1000 / 480) for edge in (x1, y1, x2, y2)]

    swatch = item("swatch_rgb", 2)
    made = json.loads(swatch.meta)
    x, y = made["parameters"]["centre"]
    shown = np.asarray(Image.open(io.BytesIO(swatch.image))).astype(float)[
        y - 5 : y + 5, x - 5 : x + 5
    ]
    lift, gain, gamma = (np.array(made["parameters"][name]) for name in ("lift", "gain", "gamma"))
    expected = lift + gain * 255 * (np.array(made["gold"]) / 255) ** gamma
    assert np.abs(shown.mean(axis=(0, 1)) - expected).max() < 4
    assert f"x={x}, y={y}" in swatch.prompt


def test_flat_photographs_are_passed_over(tmp_path: Path) -> None:
    flat, real = tmp_path / "flat.png", photos.photos(None, "train")[0]
    Image.new("RGB", (500, 500), (90, 90, 90)).save(flat)
    wanted = order("circular_shift", "train", 0, 1, (Photo("flat", flat), real))
    assert json.loads(make(wanted).meta)["photos"] == [real.id]
    alone = order("circular_shift", "train", 0, 1, (Photo("flat", flat),))
    with pytest.raises(DataError, match=r"circular_shift.*flat"):
        make(alone)


# --- photographs


def test_splits_never_share_a_photograph() -> None:
    folders = [None, COCO] if COCO.is_dir() else [None]
    for folder in folders:
        train, validation, test = (photos.photos(folder, split) for split in SPLITS)
        assert train == validation
        assert not {photo.path.name for photo in train} & {photo.path.name for photo in test}
        assert all(photo.path.is_file() for photo in (*train, *test))


def test_any_folder_is_split_by_name(tmp_path: Path) -> None:
    for number in range(20):
        Image.new("L", (80, 90), 9 * number).save(tmp_path / f"{number}.png")
    (tmp_path / "notes.txt").write_text("no photograph")
    train, test = (photos.photos(tmp_path, split) for split in ("train", "test"))
    assert len(train) + len(test) == 20
    assert train
    assert test
    (tmp_path / f"{train[0].id}").unlink()
    assert photos.photos(tmp_path, "test") == test


@pytest.mark.parametrize(
    ("mode", "size"),
    [("L", (640, 480)), ("P", (65, 200)), ("RGBA", (300, 300)), ("I;16", (99, 98))],
)
def test_odd_photographs(mode: str, size: tuple[int, int], tmp_path: Path) -> None:
    levels = np.random.default_rng(0).integers(0, 256, (size[1], size[0]))
    picture = Image.fromarray((levels * (257 if mode == "I;16" else 1)).astype(np.uint16))
    if mode != "I;16":
        picture = Image.fromarray(levels.astype(np.uint8)).convert(mode)
    picture.save(tmp_path / "odd.png")
    values = photos.pixels(tmp_path / "odd.png")
    assert values.shape == (480, 480, 3)
    assert 60 < values.mean() < 200


def test_photographs_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none at"):
        photos.photos(tmp_path / "gone", "train")
    with pytest.raises(DataError, match=r"for test items.*found none"):
        photos.photos(tmp_path, "test")
    (tmp_path / "train2017").mkdir()
    with pytest.raises(DataError, match="val2017"):
        photos.photos(tmp_path, "test")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff no photograph")
    with pytest.raises(DataError, match=r"broken\.jpg cannot be decoded"):
        photos.pixels(tmp_path / "broken.jpg")
    Image.new("RGB", (20, 300)).save(tmp_path / "small.png")
    with pytest.raises(DataError, match="20 x 300"):
        photos.pixels(tmp_path / "small.png")


# --- reference programs


def solve(task: str, made: Item, folder: Path) -> str:
    """Runs the reference program as one script in a process of its own."""
    path = folder / "image_1.png"
    path.write_bytes(made.image)
    head = f"PATH = {str(path)!r}\nPROMPT = {made.prompt!r}\n"
    program = "\n".join([head, *reference_cells(task)])
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return done.stdout.splitlines()[-1].removeprefix("ANSWER: ")


@pytest.mark.parametrize("task", references())
def test_reference_solves_built_in_items(task: str, tmp_path: Path) -> None:
    for number in (2, 3):
        made = item(task, number)
        assert score(task, made.answer, solve(task, made, tmp_path)).value == 1


@SAMPLE_FOLDERS
@pytest.mark.parametrize("task", references())
def test_reference_solves_photograph_items(task: str, tmp_path: Path) -> None:
    made = item(task, 3, folder=COCO)
    assert score(task, made.answer, solve(task, made, tmp_path)).value == 1


@pytest.mark.parametrize("task", references())
def test_reference_cells(task: str) -> None:
    cells = reference_cells(task)
    assert 1 <= len(cells) <= 3
    assert "ANSWER: " in cells[-1]
    for cell in cells:
        assert cell.strip()
        nodes = list(ast.walk(ast.parse(cell)))
        imported = {
            name.split(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [a.name for a in node.names]
            )
        }
        assert not imported & {"agent", "benchmarks", "sandbox"}
        assert "meta" not in cell


def test_every_generator_has_rule_and_reference() -> None:
    assert set(TASKS) <= set(RULES)
    assert set(references()) == set(TASKS)
    with pytest.raises(BenchmarkError, match="jigsaw"):
        reference_cells("jigsaw")
