"""What the model sees of an input picture, and what is told of it: every odd kind of file."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image as Pillow
from PIL import ImageDraw

from agent.errors import InputProblem
from agent.messages import Image
from agent.pictures import MAX_SIDE, MIN_SIDE, prepare
from benchmarks.sample import Picture

BUDGET = 1_000_000


def encode(image: Pillow.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def pixels(image: Image) -> np.ndarray:
    opened = Pillow.open(io.BytesIO(image.data))
    assert opened.size == (image.width, image.height)
    assert Pillow.MIME[str(opened.format)] == image.mime
    return np.asarray(opened.convert("RGB")).astype(int)


@pytest.mark.parametrize(("form", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg")])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_an_ordinary_picture_is_sent_byte_for_byte(form: str, mime: str, mode: str) -> None:
    data = encode(Pillow.new(mode, (480, 480), 90 if mode == "L" else (90, 10, 5)), form)
    prepared = prepare(Picture("image_1.x", data), BUDGET)
    assert prepared.image.data == data
    assert prepared.image.mime == mime
    assert prepared.text == "480×480 px, sent at 480×480 (scale 1)"
    assert [f.data for f in prepared.files] == [data]


def test_a_large_picture_is_shrunk_and_the_line_tells_how_to_get_back() -> None:
    big = Pillow.new("RGB", (4000, 3000), "white")
    big.paste((255, 0, 0), (3000, 1500, 3200, 1700))  # centre: 3100, 1600
    prepared = prepare(Picture("image_1.png", encode(big)), BUDGET)
    image = prepared.image
    assert image.width * image.height <= BUDGET
    assert (image.original_width, image.original_height) == (4000, 3000)
    assert prepared.files[0].data == encode(big)
    factor = float(re.search(r"× ([\d.]+)\)", prepared.text).group(1))  # type: ignore[union-attr]
    red = np.argwhere(pixels(image)[:, :, 1] < 128)
    y, x = (red.min(0) + red.max(0)) / 2
    assert abs(x * factor - 3100) < 6
    assert abs(y * factor - 1600) < 6


def test_16_bit_grey_is_a_smooth_gradient_and_the_file_stays() -> None:
    values = np.linspace(0, 65535, 256 * 64).reshape(64, 256).astype(np.uint16)
    data = encode(Pillow.fromarray(values))
    prepared = prepare(Picture("grad16.png", data), BUDGET)
    assert abs(pixels(prepared.image).mean() - 127.5) < 2
    assert prepared.files[0].data == data


def test_dark_12_bit_values_in_a_16_bit_file_can_be_seen() -> None:
    values = np.tile(np.linspace(0, 4095, 200).astype(np.uint16), (50, 1))
    prepared = prepare(Picture("g.png", encode(Pillow.fromarray(values))), BUDGET)
    assert pixels(prepared.image).max() == 255


@pytest.mark.parametrize("form", ["TIFF"])
def test_float_picture_with_nan(form: str) -> None:
    values = np.tile(np.linspace(-1, 1, 100, dtype=np.float32), (40, 1))
    values[0, 0] = np.nan
    shown = pixels(prepare(Picture("f.tiff", encode(Pillow.fromarray(values), form)), BUDGET).image)
    assert shown[20, 0, 0] == 0
    assert shown[20, 99, 0] == 255


def test_transparency_lies_on_white_so_that_black_text_is_readable() -> None:
    image = Pillow.new("RGBA", (200, 60), (0, 0, 0, 0))
    ImageDraw.Draw(image).text((10, 20), "J = 7.1 Hz", fill=(0, 0, 0, 255))
    shown = pixels(prepare(Picture("alpha.png", encode(image)), BUDGET).image)
    assert shown[0, 0].tolist() == [255, 255, 255]
    assert shown.min() < 80


def test_an_alpha_channel_that_hides_nothing_is_not_spoken_of() -> None:
    data = encode(Pillow.new("RGBA", (200, 60), (9, 8, 7, 255)))
    prepared = prepare(Picture("figure.png", data), BUDGET)
    assert prepared.image.data == data
    assert prepared.text == "200×60 px, sent at 200×60 (scale 1)"


def test_palette_with_transparency_as_bytes() -> None:
    image = Pillow.new("P", (32, 32), 1)
    image.putpalette([255, 0, 0, 0, 0, 255] + [0] * 762)
    image.paste(0, (0, 0, 16, 32))
    data = encode(image, transparency=bytes([0, 255]))
    shown = pixels(prepare(Picture("pal.png", data), BUDGET).image)
    assert shown[10, 4].tolist() == [255, 255, 255]
    assert shown[10, 28].tolist() == [0, 0, 255]


def test_cmyk() -> None:
    data = encode(Pillow.new("CMYK", (60, 40), (0, 255, 255, 0)), "JPEG")
    shown = pixels(prepare(Picture("c.jpg", data), BUDGET).image)
    assert shown[5, 5, 0] > 200
    assert shown[5, 5, 1] < 60


@pytest.mark.parametrize("orientation", range(2, 9))
def test_exif_turn_gives_one_size_in_box_request_and_text(orientation: int) -> None:
    upright = Pillow.new("RGB", (120, 40), "white")
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    data = encode(upright, "JPEG", exif=exif)
    prepared = prepare(Picture("image_1.jpg", data), BUDGET)
    named, original = prepared.files
    size = Pillow.open(io.BytesIO(named.data)).size
    assert named.name == "image_1.png"
    assert (original.name, original.data) == ("original/image_1.jpg", data)
    assert size == ((40, 120) if orientation > 4 else (120, 40))
    assert size == (prepared.image.width, prepared.image.height)
    assert prepared.text.startswith(f"{size[0]}×{size[1]} px")


def test_broken_metadata_does_not_cost_a_good_picture() -> None:
    data = encode(Pillow.new("RGB", (40, 40), "white"), "JPEG", xmp=b"<x:xmpmeta \xa8\xff>")
    assert prepare(Picture("meta.jpg", data), BUDGET).image.width == 40
    data = encode(
        Pillow.new("RGB", (40, 40), "white"), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\x7f"
    )
    assert prepare(Picture("meta.jpg", data), BUDGET).image.width == 40


@pytest.mark.parametrize(
    ("form", "word"), [("GIF", "first of 4 frames"), ("TIFF", "first of 4 pages")]
)
def test_animations_and_pages(form: str, word: str) -> None:
    frames = [Pillow.new("RGB", (50, 50), (k * 60, 0, 0)) for k in range(4)]
    data = encode(frames[0], form, save_all=True, append_images=frames[1:])
    prepared = prepare(Picture(f"anim.{form.lower()}", data), BUDGET)
    assert word in prepared.text
    assert prepared.image.mime == "image/png"
    assert pixels(prepared.image).max() == 0
    assert prepared.files[0].data == data


@pytest.mark.parametrize("size", [(1, 1), (16, 500), (5000, 3), (3, 40_000), (27, 28)])
def test_tiny_and_thin_pictures_reach_the_minimum_and_say_so(size: tuple[int, int]) -> None:
    prepared = prepare(Picture("t.png", encode(Pillow.new("RGB", size, "red"))), BUDGET)
    image = prepared.image
    assert min(image.width, image.height) >= MIN_SIDE
    assert max(image.width, image.height) <= MAX_SIDE
    assert max(image.width, image.height) <= 100 * min(image.width, image.height)
    assert prepared.text.startswith(f"{size[0]}×{size[1]} px, sent at {image.width}×{image.height}")
    assert pixels(image)[0, 0].tolist() == [255, 0, 0]


GOOD = encode(Pillow.effect_noise((300, 300), 80).convert("RGB"), "JPEG")
BOMB = encode(Pillow.new("1", (30_000, 30_000)), "PNG")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file"),
        (b"hello world", "found 11 bytes"),
        (GOOD[:2000], "damaged"),
        (encode(Pillow.new("RGB", (64, 64)))[:60], "damaged"),
        (BOMB, "shrink"),
    ],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_what_is_no_picture_is_one_clear_line(data: bytes, words: str) -> None:
    with pytest.raises(InputProblem) as caught:
        prepare(Picture("image_1.png", data), BUDGET)
    line = str(caught.value)
    assert line.startswith("image_1.png: expected")
    assert words in line
    assert "\n" not in line
