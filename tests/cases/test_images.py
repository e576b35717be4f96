# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Every picture case (I…, R25): what the model is sent, what lies in the box, what comes back.

One rule for coordinates: the size that is told is that of the named file in the box, as PIL and
OpenCV open it there, and what is sent shows all of that file at the scale that is told.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import struct
import zlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageDraw
from PIL.PngImagePlugin import PngInfo

from agent.cli import run as pot
from agent.config import RunConfig
from agent.evaluate import evaluate
from agent.messages import Image as Sent
from agent.pictures import MIN_SIDE, Prepared, from_display, prepare
from benchmarks.sample import Picture
from sandbox.outputs import Execution
from sandbox.spec import Limits
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, opened, stdout

BUDGET = 1_000_000
WALLS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
Pixels = NDArray[np.int64]


def saved(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def seen(sent: Sent) -> Pixels:
    """The pixels that a server gets, after the checks that hold for every picture."""
    assert sent.mime in ("image/png", "image/jpeg")
    opened_ = Image.open(io.BytesIO(sent.data))
    assert Image.MIME[str(opened_.format)] == sent.mime
    assert opened_.size == (sent.width, sent.height)
    assert getattr(opened_, "n_frames", 1) == 1
    assert opened_.getexif().get(274, 1) == 1
    return np.asarray(opened_.convert("RGB")).astype(np.int64)


# --- what goes in ---------------------------------------------------------------------------------

WHITE, RED, GREEN, BLUE = (255, 255, 255), (255, 0, 0), (0, 255, 0), (0, 0, 255)


def corner(form: str = "JPEG", orientation: int = 1, mode: str = "RGB") -> bytes:
    """120×40, white, its upper left end red; turned as a camera would save it."""
    upright = Image.new("RGB", (120, 40), "white")
    upright.paste(RED, (0, 0, 20, 20))
    back = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = upright.transpose(back[orientation]) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if form == "WEBP" else {}
    return saved(stored.convert(mode), form, exif=exif, **options)


def grey16() -> Image.Image:
    return Image.fromarray(np.linspace(0, 65535, 256 * 64).reshape(64, 256).astype(np.uint16))


def values(kind: str) -> Image.Image:
    """A ramp from left to right, 100×40, in 32 bits."""
    ramp = np.tile(np.linspace(-1, 1, 100), (40, 1))
    if kind == "int32":
        return Image.fromarray((ramp * 2_000_000_000).astype(np.int32))
    ramp = ramp.astype(np.float32)
    ramp[0, :3] = np.nan, np.inf, -np.inf
    return Image.fromarray(ramp)


def transparent_text(mode: str) -> Image.Image:
    image = Image.new("RGBA", (200, 60), (0, 0, 0, 0))
    ImageDraw.Draw(image).text((10, 20), "J = 7.1 Hz", fill=(0, 0, 0, 255))
    return image.convert(mode)


def palette() -> Image.Image:
    image = Image.new("P", (32, 32), 1)
    image.putpalette([255, 0, 0, 0, 0, 255] + [0] * 762)
    image.paste(0, (0, 0, 16, 32))
    return image


def frames() -> list[Image.Image]:
    return [Image.new("RGB", (50, 50), (k * 60, 0, 0)) for k in range(4)]


def moving(form: str) -> bytes:
    first, *others = frames()
    return saved(first, form, save_all=True, append_images=others)


def pages() -> bytes:
    first, *others = (Image.new("RGB", (40, 40), c) for c in ("red", "green", "blue"))
    return saved(first, "TIFF", save_all=True, append_images=others)


def block(colour: object, mode: str = "RGB", size: tuple[int, int] = (60, 40)) -> Image.Image:
    return Image.new(mode, size, colour)  # pyright: ignore[reportArgumentType]


def deep_png(colour: int, *samples: int) -> bytes:
    """16 bits a sample: Pillow reads these, but writes none."""
    line = b"\0" + struct.pack(f">{len(samples)}H", *samples) * 60
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 60, 40, 16, colour, 0, 0, 0)),
        (b"IDAT", zlib.compress(line * 40)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*c) for c in chunks)


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def with_chunk(kind: bytes, body: bytes) -> bytes:
    data = saved(block(RED))
    return data[:33] + chunk(kind, body) + data[33:]


def odd_profile() -> bytes:
    lab = ImageCms.createProfile("LAB")
    return ImageCms.ImageCmsProfile(lab).tobytes()


def itxt(text: str) -> bytes:
    info = PngInfo()
    info.add_itxt("XML:com.adobe.xmp", text, zip=True)
    return saved(block(RED), pnginfo=info)


def is_ramp(p: Pixels) -> bool:
    """Smooth from black to white, whatever the way; the first row may hold NaN."""
    grey = p[1:, :, 0]
    steps = max(np.abs(np.diff(grey, axis=n)).max() for n in (0, 1))
    return bool(abs(grey.mean() - 127.5) < 4 and grey.min() < 8 and grey.max() > 247 and steps < 8)


def is_all(*colour: int) -> Callable[[Pixels], bool]:
    return lambda p: bool(np.abs(p - np.array(colour)).max() <= 6)


def is_upright(p: Pixels) -> bool:
    red = np.abs(p - np.array(RED)).max(axis=2) < 60
    return bool(red[:18, :18].all() and not red[22:].any() and not red[:, 24:].any())


def is_black_on_white(p: Pixels) -> bool:
    return p[0, 0].tolist() == [255, 255, 255] and p.min() < 80


@dataclass(frozen=True)
class Case:
    """A picture, the size that must be told, a look at what is sent, words about it."""

    data: Callable[[], bytes]
    size: tuple[int, int]
    look: Callable[[Pixels], bool]
    words: str = ""
    turned: bool = False
    broken: bool = False
    """Whether PIL cannot open the file with its metadata."""


IN: dict[str, Case] = {
    "I01 16-bit grey PNG": Case(lambda: saved(grey16()), (256, 64), is_ramp, "stretched"),
    "I01 16-bit grey TIFF": Case(lambda: saved(grey16(), "TIFF"), (256, 64), is_ramp, "stretched"),
    "I01 float TIFF with NaN": Case(
        lambda: saved(values("float"), "TIFF"), (100, 40), is_ramp, "stretched"
    ),
    "I01 int32 TIFF": Case(lambda: saved(values("int32"), "TIFF"), (100, 40), is_ramp, "stretched"),
    "I01 16-bit RGB PNG": Case(
        lambda: deep_png(2, 65535, 32768, 0), (60, 40), is_all(255, 128, 0), ""
    ),
    "I01 16-bit RGBA PNG": Case(
        lambda: deep_png(6, 0, 0, 0, 0), (60, 40), is_all(*WHITE), "on white"
    ),
    "I01 16-bit grey+alpha PNG": Case(
        lambda: deep_png(4, 0, 0), (60, 40), is_all(*WHITE), "on white"
    ),
    "I01 1-bit PNG": Case(lambda: saved(block(1, "1")), (60, 40), is_all(*WHITE), "mode is 1"),
    "I01 1-bit TIFF": Case(
        lambda: saved(block(0, "1"), "TIFF"), (60, 40), is_all(0, 0, 0), "mode is 1"
    ),
    "I01 CMYK JPEG": Case(
        lambda: saved(block((0, 255, 255, 0), "CMYK"), "JPEG"), (60, 40), is_all(254, 0, 0), "CMYK"
    ),
    "I01 CMYK TIFF": Case(
        lambda: saved(block((255, 0, 255, 0), "CMYK"), "TIFF"), (60, 40), is_all(0, 255, 0), "CMYK"
    ),
    "I01 LAB TIFF": Case(
        lambda: saved(block((255, 0, 0), "LAB"), "TIFF"), (60, 40), lambda p: p.size > 0, "LAB"
    ),
    "I01 YCbCr TIFF": Case(
        lambda: saved(block(RED).convert("YCbCr"), "TIFF"), (60, 40), is_all(254, 0, 0), ""
    ),
    "I03 RGBA PNG": Case(
        lambda: saved(transparent_text("RGBA")), (200, 60), is_black_on_white, "on white"
    ),
    "I03 LA PNG": Case(
        lambda: saved(transparent_text("LA")), (200, 60), is_black_on_white, "on white"
    ),
    "I03 RGBA WebP": Case(
        lambda: saved(transparent_text("RGBA"), "WEBP"), (200, 60), is_black_on_white, "on white"
    ),
    "I03 RGBA TIFF": Case(
        lambda: saved(transparent_text("RGBA"), "TIFF"), (200, 60), is_black_on_white, "on white"
    ),
    "I03 alpha that hides nothing": Case(
        lambda: saved(block((*BLUE, 255), "RGBA")), (60, 40), is_all(*BLUE), ""
    ),
    "I04 palette PNG, alpha as bytes": Case(
        lambda: saved(palette(), transparency=bytes([0, 255])),
        (32, 32),
        lambda p: is_all(*WHITE)(p[:, :15]) and is_all(*BLUE)(p[:, 17:]),
        "on white",
    ),
    "I04 palette PNG, alpha as index": Case(
        lambda: saved(palette(), transparency=0),
        (32, 32),
        lambda p: is_all(*WHITE)(p[:, :15]) and is_all(*BLUE)(p[:, 17:]),
        "on white",
    ),
    "I04 palette GIF, alpha": Case(
        lambda: saved(palette(), "GIF", transparency=0),
        (32, 32),
        lambda p: is_all(*WHITE)(p[:, :15]) and is_all(*BLUE)(p[:, 17:]),
        "on white",
    ),
    "I04 RGB PNG, alpha as colour": Case(
        lambda: saved(block(RED), transparency=RED), (60, 40), is_all(*WHITE), "on white"
    ),
    **{
        f"I06 {form}, orientation {n}": Case(
            lambda form=form, n=n: corner(form, n), (120, 40), is_upright, "upright", turned=True
        )
        for form in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF")
        for n in range(2, 9)
        if form in ("JPEG", "TIFF") or n in (3, 6)
    },
    "I06 JPEG, orientation 1": Case(lambda: corner("JPEG", 1), (120, 40), is_upright),
    "I06 JPEG, orientation 9": Case(
        lambda: corner("JPEG", 1).replace(
            b"\x01\x12\0\3\0\0\0\1\0\1", b"\x01\x12\0\3\0\0\0\1\0\x09", 1
        ),
        (120, 40),
        is_upright,
    ),
    "I06 JPEG, CMYK, orientation 6": Case(
        lambda: corner("JPEG", 6, "CMYK"), (120, 40), is_upright, "upright", turned=True
    ),
    "I07 1x1": Case(lambda: saved(block(RED, size=(1, 1))), (1, 1), is_all(*RED), "scale 28"),
    "I07 16x16": Case(lambda: saved(block(RED, size=(16, 16))), (16, 16), is_all(*RED), "scale 2"),
    "I07 16x500": Case(
        lambda: saved(block(RED, size=(16, 500))), (16, 500), is_all(*RED), "scale 2"
    ),
    "I07 1x400": Case(
        lambda: saved(block(RED, size=(1, 400))), (1, 400), lambda p: is_all(*RED)(p[:, :1]), ""
    ),
    "I07 10000x3": Case(
        lambda: saved(block(RED, size=(10_000, 3))),
        (10_000, 3),
        lambda p: is_all(*RED)(p[:2]),
        "white added",
    ),
    "I07 27x28": Case(lambda: saved(block(RED, size=(27, 28))), (27, 28), is_all(*RED), "scale 2"),
    "I08 GIF": Case(lambda: moving("GIF"), (50, 50), is_all(0, 0, 0), "first of 4 frames"),
    "I08 WebP": Case(lambda: moving("WEBP"), (50, 50), is_all(0, 0, 0), "first of 4 frames"),
    "I08 PNG": Case(lambda: moving("PNG"), (50, 50), is_all(0, 0, 0), "first of 4 frames"),
    "I08 AVIF": Case(lambda: moving("AVIF"), (50, 50), is_all(0, 0, 0), "first of 4 frames"),
    "I12 TIFF": Case(pages, (40, 40), is_all(*RED), "first of 3 pages"),
    "I14 XMP that is no UTF-8": Case(
        lambda: saved(block(RED), "JPEG", xmp=b"<x:xmpmeta \xa8\xff>"), (60, 40), is_all(254, 0, 0)
    ),
    "I14 EXIF that points nowhere": Case(
        lambda: saved(block(RED), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\x7f"),
        (60, 40),
        is_all(254, 0, 0),
    ),
    "I14 EXIF of bytes": Case(
        lambda: saved(block(RED), "JPEG", exif=b"Exif\0\0" + bytes(range(256)) * 200),
        (60, 40),
        is_all(254, 0, 0),
    ),
    "I14 EXIF whose directory is its own next": Case(
        lambda: saved(block(RED), "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\x08\0\0\0"),
        (60, 40),
        is_all(254, 0, 0),
    ),
    "I14 profile of bytes": Case(
        lambda: saved(block(RED), "JPEG", icc_profile=b"\xa8\xff" * 40_000),
        (60, 40),
        is_all(254, 0, 0),
        "profile is not applied",
    ),
    "I14 another profile": Case(
        lambda: saved(block(RED), icc_profile=odd_profile()),
        (60, 40),
        is_all(*RED),
        "profile is not applied",
    ),
    "I14 PNG text that inflates to 100 MB": Case(
        lambda: with_chunk(b"zTXt", b"t\0\0" + zlib.compress(bytes(100_000_000))),
        (60, 40),
        is_all(*RED),
        "metadata",
        broken=True,
    ),
    "I14 PNG XMP that inflates to 8 MB": Case(
        lambda: itxt("x" * 8_000_000), (60, 40), is_all(*RED), "metadata", broken=True
    ),
    "I14 PNG text without a key": Case(
        lambda: with_chunk(b"tEXt", b"\xff\xfe\0\xa8"), (60, 40), is_all(*RED)
    ),
    "I14 PNG whose text has a wrong checksum": Case(
        lambda: with_chunk(b"tEXt", b"a\0b").replace(b"a\0b", b"a\0c"),
        (60, 40),
        is_all(*RED),
        "metadata",
        broken=True,
    ),
    "a JPEG named .png": Case(lambda: saved(block(RED), "JPEG"), (60, 40), is_all(254, 0, 0)),
    "MPO": Case(
        lambda: saved(block(RED), "MPO", save_all=True, append_images=[block(BLUE)]),
        (60, 40),
        is_all(254, 0, 0),
    ),
    "BMP": Case(lambda: saved(block(RED), "BMP"), (60, 40), is_all(*RED)),
    "PPM": Case(lambda: saved(block(RED), "PPM"), (60, 40), is_all(*RED)),
    "ICO": Case(lambda: saved(block(RED, size=(48, 48)), "ICO"), (48, 48), is_all(*RED)),
    "JPEG 2000": Case(lambda: saved(block(RED), "JPEG2000"), (60, 40), is_all(*RED)),
    "progressive JPEG": Case(
        lambda: saved(block(RED), "JPEG", progressive=True), (60, 40), is_all(254, 0, 0)
    ),
    "large": Case(
        lambda: saved(block(RED, size=(3000, 2000))), (3000, 2000), is_all(*RED), "scale 0.40"
    ),
}


@cache
def data_of(name: str) -> bytes:
    return IN[name].data()


@cache
def prepared(name: str) -> Prepared:
    return prepare(Picture(f"c{list(IN).index(name)}.png", data_of(name)), BUDGET)


@dataclass(frozen=True)
class Box:
    cells: Cells
    found: dict[str, list[object]]
    """What PIL and OpenCV say in there of each file: sha256, size, mode, OpenCV's size."""


LOOK = """
import hashlib, json, os, warnings
os.environ["OPENCV_LOG_LEVEL"] = "SILENT"
from PIL import Image
import cv2
cv2.utils.logging.setLogLevel(0)
warnings.simplefilter("ignore")
found = {{}}
for name in {names}:
    path = os.path.join({folder!r}, name)
    size = mode = None
    if not name.startswith("original/"):
        with Image.open(path) as image:
            image.load()
            size, mode = image.size, image.mode
    array = cv2.imread(path)
    other = None if array is None else array.shape[1::-1]
    found[name] = [hashlib.sha256(open(path, "rb").read()).hexdigest(), size, mode, other]
print(json.dumps(found))
"""


@pytest.fixture(scope="module", params=WALLS)
def box(request: pytest.FixtureRequest) -> Generator[Box]:
    files = tuple(file for name in IN for file in prepared(name).files)
    limits = Limits(
        memory_mb=1024, output_chars=60_000, picture_pixels=2_000_000, grace_seconds=1.0
    )
    with opened(available_wall(request.param), limits=limits, inputs=files) as cells:
        cells.preloaded()
        names = [file.name for file in files]
        execution = cells.run(LOOK.format(names=names, folder=cells.box.data_dir))
        assert execution.status == "ok", execution
        yield Box(cells, json.loads(stdout(execution)))


@pytest.mark.parametrize("name", IN)
def test_what_is_sent_and_told(name: str) -> None:
    case, made = IN[name], prepared(name)
    sent, text = made.image, made.text
    pixels = seen(sent)
    assert (sent.original_width, sent.original_height) == case.size
    assert text.startswith(f"{case.size[0]}×{case.size[1]} px, sent at {sent.width}×{sent.height}")
    assert case.words in text
    assert case.look(pixels)
    assert sent.width * sent.height <= BUDGET
    assert min(sent.width, sent.height) >= MIN_SIDE
    assert max(sent.width, sent.height) <= 100 * min(sent.width, sent.height)
    assert b"xmpmeta" not in sent.data
    assert b"Exif" not in sent.data


@pytest.mark.parametrize("name", IN)
def test_what_lies_in_the_box(name: str, box: Box) -> None:
    case, made = IN[name], prepared(name)
    data = data_of(name)
    named = made.files[0]
    assert [file.data for file in made.files][-1] == data, "the original bytes are in there"
    assert len(made.files) == (2 if case.turned or case.broken else 1)
    if len(made.files) == 2:
        assert made.files[1].name == f"original/{named.name}"
    for file in made.files:
        assert box.found[file.name][0] == hashlib.sha256(file.data).hexdigest()
    _, size, _, other = box.found[named.name]
    assert size == list(case.size)
    assert other in (None, list(case.size)), "OpenCV and PIL agree with what is told"


def test_turned_values_are_kept(box: Box) -> None:
    """An upright copy has every value of its original: 16 bits, floats, transparency."""
    del box  # the same files as in there
    exif = Image.Exif()
    exif[0x0112] = 6
    for image, ending in (
        (grey16(), "png"),
        (values("float"), "tif"),
        (values("int32"), "tif"),
        (transparent_text("RGBA"), "png"),
        (transparent_text("LA"), "png"),
        (palette(), "png"),
    ):
        made = prepare(Picture("turned.tiff", saved(image, "TIFF", exif=exif)), BUDGET)
        assert made.files[0].name == f"turned.{ending}"
        again = Image.open(io.BytesIO(made.files[0].data))
        assert again.mode == image.mode
        np.testing.assert_array_equal(np.asarray(again), np.rot90(np.asarray(image), -1))
        assert (made.image.original_width, made.image.original_height) == again.size
        assert made.image.original_width == image.height


# --- what comes back ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Back:
    """A cell, its pictures as the model is sent them, and words that it is told."""

    code: str
    sizes: list[tuple[int, int]]
    look: Callable[[Pixels], bool]
    words: str = ""


START = "import io, numpy as np\nfrom PIL import Image, ImageDraw\n"
OUT: dict[str, Back] = {
    "I01 saved": Back(
        "a = np.linspace(0, 65535, 256 * 64).reshape(64, 256).astype(np.uint16)\n"
        "Image.fromarray(a).save('grad16.png')",
        [(256, 64)],
        is_ramp,
    ),
    "I01 displayed": Back(
        "a = np.linspace(0, 65535, 256 * 64).reshape(64, 256).astype(np.uint16)\n"
        "Image.fromarray(a)",
        [(256, 64)],
        is_ramp,
    ),
    "I01 CMYK saved": Back(
        "Image.new('CMYK', (60, 40), (0, 255, 255, 0)).save('c.jpg')",
        [(60, 40)],
        is_all(254, 0, 0),
    ),
    "I01 float TIFF saved": Back(
        "Image.fromarray(np.tile(np.linspace(0, 1, 100, dtype='f4'), (40, 1))).save('f.tiff')",
        [(100, 40)],
        is_ramp,
    ),
    "I03 saved and displayed": Back(
        "im = Image.new('RGBA', (200, 60), (0, 0, 0, 0))\n"
        "ImageDraw.Draw(im).text((10, 20), 'J = 7.1 Hz', fill=(0, 0, 0, 255))\n"
        "im.save('alpha.png')\nim",
        [(200, 60)],
        is_black_on_white,
        "on white",
    ),
    "I04 saved": Back(
        "im = Image.new('P', (32, 32), 1)\n"
        "im.putpalette([255, 0, 0, 0, 0, 255] + [0] * 762)\n"
        "im.paste(0, (0, 0, 16, 32))\n"
        "im.save('pal.png', transparency=bytes([0, 255]))",
        [(32, 32)],
        lambda p: is_all(*WHITE)(p[:, :15]) and is_all(*BLUE)(p[:, 17:]),
        "on white",
    ),
    "I06 saved": Back(
        "im = Image.new('RGB', (120, 40), 'white'); im.paste((255, 0, 0), (0, 0, 20, 20))\n"
        "ex = Image.Exif(); ex[0x0112] = 6\nim.save('rot.jpg', exif=ex, quality=95)",
        [(120, 40)],  # as Image.open has it in the box: nothing that is sent asks for a turn
        is_upright,
    ),
    "I07 one and thin": Back(
        "Image.new('RGB', (1, 1), 'red').save('one.png')\n"
        "Image.new('RGB', (16, 500), 'red').save('thin.png')",
        [(28, 28), (32, 1000)],
        is_all(*RED),
        "scale 28",
    ),
    "I07 a strip": Back(
        "Image.new('RGB', (10000, 3), 'red')", [(8000, 80)], lambda p: is_all(*RED)(p[:2]), "white"
    ),
    "I07 no pixels": Back(
        "Image.new('RGB', (0, 5))\nprint('shown', Image.new('RGB', (0, 5)).size)",
        [],
        lambda p: True,
        "shown (0, 5)",
    ),
    "I08 GIF": Back(
        "fr = [Image.new('RGB', (50, 50), (k * 60, 0, 0)) for k in range(4)]\n"
        "fr[0].save('anim.gif', save_all=True, append_images=fr[1:], duration=100, loop=0)\n"
        "from IPython.display import Image as Im, display\ndisplay(Im(filename='anim.gif'))",
        [(50, 50)],
        is_all(0, 0, 0),
        "4 frames; the first is shown",
    ),
    "I08 WebP and PNG": Back(
        "fr = [Image.new('RGB', (50, 50), (k * 60, 0, 0)) for k in range(4)]\n"
        "fr[0].save('a.webp', save_all=True, append_images=fr[1:])\n"
        "fr[0].save('a.png', save_all=True, append_images=fr[1:])",
        [(50, 50)],
        is_all(0, 0, 0),
        "4 frames; the first is shown",
    ),
    "I12 saved": Back(
        "p = [Image.new('RGB', (40, 40), c) for c in ('red', 'green', 'blue')]\n"
        "p[0].save('multi.tiff', save_all=True, append_images=p[1:])",
        [(40, 40)],
        is_all(*RED),
        "3 pages; the first is shown",
    ),
    "I14 saved": Back(
        "Image.new('RGB', (60, 40), 'red').save('meta.jpg', xmp=b'<x:xmpmeta \\xa8\\xff>')",
        [(60, 40)],
        is_all(254, 0, 0),
    ),
    "I15 figure": Back(
        "import matplotlib.pyplot as plt\n"
        "plt.figure(figsize=(10, 8), dpi=1200)\nplt.plot([0, 1]); plt.show()",
        [(1119, 893)],
        lambda p: bool(p.mean() > 200),
        "12000x9600 pixels was shrunk",
    ),
    "I15 saved": Back(
        "Image.new('RGB', (3000, 2500), 'red').save('big.png')",
        [(1095, 912)],
        is_all(*RED),
        "3000x2500 pixels was shrunk to",
    ),
    "a damaged file": Back(
        "b = io.BytesIO(); Image.effect_noise((90, 90), 50).save(b, 'PNG')\n"
        "open('bad.png', 'wb').write(b.getvalue()[:2000])\n"
        "open('bad.jpg', 'wb').write(b'\\xff\\xd8\\xff' + bytes(50))\n"
        "open('not.png', 'w').write('<svg/>'); print('done')",
        [],
        lambda p: True,
        "done",
    ),
    "wrong endings": Back(
        "Image.new('RGB', (60, 40), 'red').save('j.png', 'JPEG', quality=95)\n"
        "Image.new('RGB', (60, 40), 'red').save('b.jpg', 'BMP')",
        [(60, 40), (60, 40)],
        is_all(255, 0, 0),
    ),
}


def told(execution: Execution) -> tuple[list[Sent], str]:
    """The pictures as the model is sent them, and every word beside."""
    sent: list[Sent] = []
    words = [execution.text, execution.note or ""]
    for display in execution.pictures:
        image, text = from_display(display, "output_1_1.png", BUDGET)
        assert text.startswith(f"{display.width}×{display.height} px")
        sent.append(image)
        words.append(text)
    return sent, "\n".join(words)


@pytest.mark.parametrize("name", OUT)
def test_what_comes_back(name: str, box: Box) -> None:
    case = OUT[name]
    execution = box.cells.run(START + case.code)
    assert (execution.status, execution.kernel) == ("ok", "kept"), execution
    sent, words = told(execution)
    sizes = [(image.width, image.height) for image in sent]
    if "figure" in name:  # its margins are matplotlib's
        assert [abs(w * h - BUDGET) < 5000 for w, h in sizes] == [True]
    else:
        assert sizes == case.sizes
    assert all(case.look(seen(image)) for image in sent)
    assert case.words in words
    assert "Warning" not in words


# --- one bad picture ------------------------------------------------------------------------------


def test_r25_one_bad_picture_fails_its_row_alone(tmp_path: Path) -> None:
    """A truncated picture fails its row with kind `input`; invalid XMP costs nothing."""
    data = tmp_path / "data"
    assert pot(["build", "cwi", "--tasks", "swatch_rgb", "--count", "5", "--out", str(data)]) == 0
    (file,) = data.glob("swatch_rgb/*.parquet")
    rows = pq.read_table(file).to_pylist()
    good = rows[2]["image"]["bytes"]
    rows[1]["image"]["bytes"] = rows[1]["image"]["bytes"][:2000]
    rows[2]["image"]["bytes"] = good[:33] + chunk(b"iTXt", b"XML:com.adobe.xmp\xa8") + good[33:]
    rows[3]["image"]["bytes"] = b"<svg/>"
    pq.write_table(pa.Table.from_pylist(rows), file)
    config = RunConfig("cwi", data=str(data), model="scripted", sandbox="process")
    finished = asyncio.run(evaluate(config, tmp_path / "run"))
    summary = finished.summary
    assert (summary["owed"], summary["correct"], summary["failed"]) == (5, 3, {"input": 2})
    bad = {key[0] for key, kept in finished.rows.items() if kept.failure}
    assert bad == {rows[1]["id"], rows[3]["id"]}
    records = "".join(p.read_text() for p in (tmp_path / "run" / "samples").glob("*.json"))
    assert "expected a whole picture, found a damaged one" in records
    assert "found an SVG drawing; render it to PNG" in records
