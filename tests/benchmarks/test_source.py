"""The reader of local data folders: what it gives, and everything it refuses."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks import BenchmarkError, DataError, GoldError, load
from benchmarks.pictures import leaks, suffix
from tests.benchmarks.pictures import PROMPT, chunk, encoded, folder, row, with_chunk


def test_rows_become_samples(tmp_path: Path) -> None:
    jpeg, png = encoded("JPEG"), encoded(colour=7)
    data = folder(
        tmp_path,
        [
            row(0, meta=json.dumps({"tier": "easy"})),
            row(1, image={"bytes": jpeg, "path": "x.png"}, image_2={"bytes": png, "path": None}),
            row(2, image=None, image_2={"bytes": png, "path": None}),
        ],
    )
    first, second, third = load("cwi", data=data)
    assert (first.id, first.task, first.group) == (
        "circular_shift/test/0",
        "circular_shift",
        "transformation",
    )
    assert (first.prompt, first.target, first.difficulty) == (PROMPT, "-37,112", "easy")
    assert first.meta == {"tier": "easy"}
    assert [p.name for p in first.pictures] == ["image_1.png"]
    assert [(p.name, p.data) for p in second.pictures] == [
        ("image_1.jpg", jpeg),
        ("image_2.png", png),
    ]
    assert [p.name for p in third.pictures] == ["image_2.png"]


def test_shards_and_tasks_in_order(tmp_path: Path) -> None:
    folder(tmp_path, [row(0), row(1)], file="test-00000-of-00002.parquet")
    folder(tmp_path, [row(2)], file="test-00001-of-00002.parquet")
    folder(tmp_path, [row(9, id="p/0", answer="12")], task="peak_count")
    assert [s.id[-1] for s in load("cwi", data=tmp_path)] == ["0", "1", "2", "0"]
    assert [s.id for s in load("cwi", data=tmp_path, tasks=["peak_count"])] == ["p/0"]


def test_limit_is_spread_over_tasks(tmp_path: Path) -> None:
    folder(tmp_path, [row(number) for number in range(4)])
    folder(tmp_path, [row(0, id=f"p/{n}", answer="12") for n in range(4)], task="peak_count")
    chosen = load("cwi", data=tmp_path, limit=3)
    assert [s.id for s in chosen] == ["circular_shift/test/0", "circular_shift/test/1", "p/0"]
    by_id = load("cwi", data=tmp_path, ids=["p/3", "circular_shift/test/2"])
    assert [s.id for s in by_id] == ["p/3", "circular_shift/test/2"]
    with pytest.raises(DataError, match=r"p/9.*did you mean p/"):
        load("cwi", data=tmp_path, ids=["p/9"])


def test_without_the_optional_columns(tmp_path: Path) -> None:
    needed = {"id", "image", "prompt", "answer"}
    folder(tmp_path, [{k: v for k, v in row(0).items() if k in needed}])
    assert load("cwi", data=tmp_path)[0].difficulty == ""


def several(number: int, *colours: int | None, column: str = "image_{}") -> dict[str, Any]:
    """A row whose pictures have these colours; None is null."""
    found = [c if c is None else {"bytes": encoded(colour=c), "path": None} for c in colours]
    bare = {k: v for k, v in row(number).items() if k not in ("image", "image_2")}
    if column == "images":
        return {**bare, "images": found}
    return {**bare, **{column.format(n): each for n, each in enumerate(found, 1)}}


R23 = [
    pytest.param("image_{}", id="R23-image_1-image_7"),
    pytest.param("images", id="R23-images"),
    pytest.param("image", id="R23-image-image_2"),
]


@pytest.mark.parametrize("layout", R23)
def test_null_pictures_are_none_and_the_numbers_stay(layout: str, tmp_path: Path) -> None:
    """Seven columns are allowed, none but one is owed; a null one is never a picture."""
    wanted: list[tuple[int | None, ...]] = [
        (1, None, None, None, None, None, None),
        (1, 2, None, None, None, None, None),
        (None, 2, None, None, None, None, None),
        (None, None, None, None, None, 6, 7),
        (1, 2, 3, 4, 5, 6, 7),
    ]
    rows = [several(number, *colours, column=layout) for number, colours in enumerate(wanted)]
    if layout == "image":  # the Hub's own names: the first column has no number
        rows = [several(number, *colours) for number, colours in enumerate(wanted)]
        rows = [{("image" if k == "image_1" else k): v for k, v in each.items()} for each in rows]
    found = load("cwi", data=folder(tmp_path, rows))
    for sample, colours in zip(found, wanted, strict=True):
        there = [(n, c) for n, c in enumerate(colours, 1) if c is not None]
        assert [p.name for p in sample.pictures] == [f"image_{n}.png" for n, _ in there]
        assert [p.data for p in sample.pictures] == [encoded(colour=c) for _, c in there]


def test_two_columns_of_first_pictures_are_refused(tmp_path: Path) -> None:
    both = {**row(0), "image_1": {"bytes": encoded(), "path": None}}
    with pytest.raises(DataError, match=r"image or image_1"):
        load("cwi", data=folder(tmp_path, [both]))


REFUSED: dict[str, tuple[list[dict[str, Any]], type[BenchmarkError], str]] = {
    "gold of another type": ([row(0), row(1, answer="left")], GoldError, "row 1.*'left'"),
    "gold with too many numbers": ([row(0, answer="1,2,3")], GoldError, "row 0.*expected 2"),
    "gold unlike its meta": (
        [row(0, meta='{"generator": "potrunner", "gold": [-37, 100]}')],
        GoldError,
        "row 0.*meta",
    ),
    "equal ids": ([row(0), row(1), row(0)], DataError, "twice.*row 0 and .*row 2"),
    "no picture": ([row(0), row(1, image=None)], DataError, "row 1.*null in every"),
    "picture without bytes": (
        [row(0, image={"bytes": None, "path": "gone.png"})],
        DataError,
        "image bytes",
    ),
    "meta that is no JSON": ([row(0, meta="{")], DataError, "JSON text.*row 0"),
    "meta that is too deep": ([row(0, meta="[" * 100_000)], DataError, "JSON text.*row 0"),
    "meta that is no object": ([row(0, meta="[1]")], DataError, "object.*row 0"),
    "no prompt": ([row(0, prompt=None), row(1)], DataError, "prompt.*row 0"),
    "no columns": ([{"question": "?", "label": 1}], DataError, "found question, label"),
    "gold in the metadata": (
        [row(0, image={"bytes": with_chunk(b"tEXt", b"shift\0-37,112"), "path": None})],
        DataError,
        "row 0.*metadata of image ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    rows, error, words = REFUSED[name]
    with pytest.raises(error, match=words) as raised:
        load("cwi", data=folder(tmp_path, rows))
    assert "test-00000-of-00001.parquet" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_equal_ids_across_files_and_types(tmp_path: Path) -> None:
    folder(tmp_path, [row(0, id="7")], file="test-00000-of-00002.parquet")
    folder(tmp_path, [row(0, id=7)], file="test-00001-of-00002.parquet")
    with pytest.raises(DataError, match=r"00000-of-00002.*00001-of-00002"):
        load("cwi", data=tmp_path)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("dup", "dup", id="R04-text"),
        pytest.param(7, "7", id="R04-7-and-'7'"),
        pytest.param(7.0, "7.0", id="R04-float"),
        pytest.param("", "", id="R04-empty"),
        pytest.param("图\u0000", "图\u0000", id="R04-any-characters"),
    ],
)
def test_two_rows_of_one_id_are_refused_with_both_places(
    first: object, second: object, tmp_path: Path
) -> None:
    one = [row(1, id=first)]  # alone where its column is of numbers
    folder(tmp_path, [row(0), *one] if isinstance(first, str) else one)
    folder(tmp_path, [row(2, answer="12"), row(3, id=second, answer="12")], task="peak_count")
    with pytest.raises(DataError, match="expected unique ids") as raised:
        load("cwi", data=tmp_path)
    assert re.search(r"circular_shift/test-\S+, row [01] and ", str(raised.value))
    assert re.search(r"peak_count/test-\S+, row 1$", str(raised.value))


def test_ids_that_differ_in_case_or_normal_form_only_are_different(tmp_path: Path) -> None:
    ids = ["Case", "case", "\u00e9", "e\u0301", "a b", "a  b", "7", "07", ""]
    found = load("cwi", data=folder(tmp_path, [row(n, id=each) for n, each in enumerate(ids)]))
    assert [sample.id for sample in found] == ids


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none at"):
        load("cwi", data=tmp_path / "gone")
    with pytest.raises(DataError, match=r"none at no/such; .* pass --data hub:no/such$"):
        load("cwi", data="no/such")
    with pytest.raises(DataError, match="found none"):
        load("cwi", data=tmp_path)
    folder(tmp_path, [row(0)])
    with pytest.raises(DataError, match="only the splits test"):
        load("cwi", data=tmp_path, split="train")
    with pytest.raises(DataError, match=r"peak_count/test-\*"):
        load("cwi", data=tmp_path, tasks=["peak_count"])
    with pytest.raises(DataError, match="--data"):
        load("cwi")
    with pytest.raises(BenchmarkError, match="did you mean circular_shift"):
        load("cwi", data=tmp_path, tasks=["circular_shif"])
    with pytest.raises(BenchmarkError, match="did you mean cwi"):
        load("cw", data=tmp_path)
    (tmp_path / "peak_count").mkdir()
    (tmp_path / "peak_count/test-0.parquet").write_bytes(b"PAR1 no, text")
    with pytest.raises(DataError, match="cannot be read"):
        load("cwi", data=tmp_path, tasks=["peak_count"])


def exif(text: str, tag: int = 0x9286) -> bytes:
    data = Image.Exif()
    data[tag] = text
    return data.tobytes()


GOLD = "-37,112"
LEAKING = {
    "tEXt": with_chunk(b"tEXt", b"note\0the shift is -37,112."),
    "tEXt after the pixels": with_chunk(b"tEXt", b"note\0-37,112", last=True),
    "zTXt": with_chunk(b"zTXt", b"note\0\0" + zlib.compress(b"-37,112")),
    "iTXt": with_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<x>-37,112</x>"),
    "a private chunk": with_chunk(b"meTa", b'{"gold": "-37,112"}'),
    "after the end": encoded() + b"-37,112",
    "EXIF in PNG": encoded(exif=exif(GOLD, 0x010E)),
    "EXIF in JPEG": encoded("JPEG", exif=exif(GOLD, 0x010E)),
    "EXIF in UTF-16": encoded("JPEG", exif=exif("", 0x010E) + GOLD.encode("utf-16-le")),
    "comment in JPEG": encoded("JPEG", comment=b"dx,dy = -37,112"),
    "comment in GIF": encoded("GIF", comment=b"-37,112"),
    "EXIF in WEBP": encoded("WEBP", exif=exif(GOLD, 0x010E)),
}


@pytest.mark.parametrize("name", LEAKING)
def test_leaks(name: str) -> None:
    assert leaks(LEAKING[name], GOLD)
    assert not leaks(LEAKING[name], "-38,112")


def test_what_is_no_leak() -> None:
    assert not leaks(encoded(), GOLD)
    assert not leaks(with_chunk(b"tEXt", b"date\0" + b"2012-01-12"), "12")
    assert not leaks(with_chunk(b"tEXt", b"size\0" + b"1-37,1123"), "37,112")
    assert not leaks(with_chunk(b"tEXt", b"shots\0" + b"12 of 30"), "12")
    assert leaks(with_chunk(b"tEXt", b"answer\0" + b"n = 12"), "12")
    assert leaks(with_chunk(b"tEXt", b"comment\0" + b"12"), "12")
    assert not leaks(with_chunk(b"tEXt", b"comment\0x"), " ")


def test_broken_metadata_is_passed_over() -> None:
    for data in (
        with_chunk(b"zTXt", b"note\0\0not deflated"),
        encoded()[:60],
        b"\x89PNG\r\n\x1a\n" + chunk(b"tEXt", b"")[:6],
        b"\xff\xd8\xff\xe1\xff",
        b"",
    ):
        assert not leaks(data, GOLD)


def test_real_formats() -> None:
    names = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp", "GIF": "gif", "BMP": "bmp", "TIFF": "tif"}
    assert {form: suffix(encoded(form)) for form in names} == names
    assert suffix(b"text") == "bin"
