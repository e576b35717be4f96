"""The gold in a picture's metadata is found wherever a data set may have left it."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from benchmarks.pictures import hidden_text, leaks, suffix

GOLD = "-37,112"


def saved(form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((24, 24), 60).convert("RGB").save(buffer, form, **options)
    return buffer.getvalue()


def exif(tag: int, value: object) -> Image.Exif:
    made = Image.Exif()
    made[tag] = value
    return made


def user_comment(text: str) -> Image.Exif:
    made = Image.Exif()
    made.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + text.encode("utf-16-le")
    return made


def png_text(text: str, *, zipped: bool = False, international: bool = False) -> bytes:
    info = PngInfo()
    if international:
        info.add_itxt("note", text, zip=zipped)
    else:
        info.add_text("note", text, zip=zipped)
    return saved("PNG", pnginfo=info)


def profile(text: str) -> bytes:
    """An sRGB profile with another description."""
    built_in = ImageCms.createProfile("sRGB")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    made = bytearray(ImageCms.ImageCmsProfile(built_in).tobytes())  # pyright: ignore[reportUnknownArgumentType]
    wide = f"{text} ".encode("utf-16-be")
    place = bytes(made).index("sRGB".encode("utf-16-be"))
    made[place : place + len(wide)] = wide
    return bytes(made)


def after_pixels(text: str) -> bytes:
    """A PNG whose text chunk comes after IDAT, where imaging libraries do not look at first."""
    data = saved("PNG")
    body = b"tEXtnote\0" + text.encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return data[:-12] + chunk + data[-12:]


def between_scans(text: str) -> bytes:
    data = saved("JPEG", progressive=True)
    scan = data.rindex(b"\xff\xda")
    comment = text.encode()
    return data[:scan] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + data[scan:]


PLACES: dict[str, Callable[[str], bytes]] = {
    "PNG tEXt": png_text,
    "PNG zTXt": lambda text: png_text(text, zipped=True),
    "PNG iTXt": lambda text: png_text(text, international=True),
    "PNG iTXt, packed": lambda text: png_text(text, international=True, zipped=True),
    "PNG EXIF": lambda text: saved("PNG", exif=exif(0x010E, text)),
    "PNG text after the pixels": after_pixels,
    "PNG profile": lambda text: saved("PNG", icc_profile=profile(text)),
    "PNG, after its end": lambda text: saved("PNG") + text.encode(),
    "JPEG comment": lambda text: saved("JPEG", comment=text.encode()),
    "JPEG comment between scans": between_scans,
    "JPEG EXIF description": lambda text: saved("JPEG", exif=exif(0x010E, text)),
    "JPEG EXIF XPComment": lambda text: saved("JPEG", exif=exif(0x9C9C, text.encode("utf-16-le"))),
    "JPEG EXIF UserComment": lambda text: saved("JPEG", exif=user_comment(text)),
    "JPEG XMP": lambda text: saved("JPEG", xmp=f"<x:xmpmeta a='{text}'/>".encode()),
    "JPEG profile": lambda text: saved("JPEG", icc_profile=profile(text)),
    "JPEG, after its end": lambda text: saved("JPEG") + text.encode() + b"\xff\xd9",
    "GIF comment": lambda text: saved("GIF", comment=text.encode()),
    "TIFF description": lambda text: saved("TIFF", description=text),
    "WebP EXIF": lambda text: saved("WEBP", exif=exif(0x010E, text)),
    "WebP XMP": lambda text: saved("WEBP", xmp=f"<x a='{text}'/>".encode()),
    "BMP, after its end": lambda text: saved("BMP") + text.encode("utf-16-le"),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_gold_is_found(place: str) -> None:
    make = PLACES[place]
    assert leaks(make(GOLD), GOLD)
    assert not leaks(make("-38,112"), GOLD)
    assert not leaks(make("1-37,1123"), GOLD)


@pytest.mark.parametrize(
    "text",
    [
        "-37, 112",
        "(-37) (112)",
        "[-37,\n112]",
        '{"dx": -37, "dy": 112}',
        "dx=-37;dy=112",
        "x-37,112 ",
    ],
)
def test_the_gold_in_other_punctuation(text: str) -> None:
    found = leaks(png_text(f"shift {text}"), GOLD)
    assert found == (not text.startswith("x"))


@pytest.mark.parametrize(
    ("answer", "text", "found"),
    [
        ("12", "answer 12", True),
        ("12", "12", True),
        ("12", "2012-01-12", False),
        ("12", "12 of 30", False),
        ("größe", "die größe ist", True),
        ("swatch b", "is Swatch b", False),
        ("swatch b", "is swatch b", True),
        ("swatch b", "is swatch, b", True),
        ("a", "answer: b", False),
    ],
)
def test_short_and_worded_answers(answer: str, text: str, found: bool) -> None:
    assert leaks(png_text(text, international=True), answer) == found


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP"])
def test_a_picture_without_metadata_tells_nothing(form: str) -> None:
    data = saved(form)
    for answer in (GOLD, "12", "7", "255,255,255", "4"):
        assert not leaks(data, answer)


@given(st.binary(max_size=300), st.integers(0, 300), st.sampled_from(["PNG", "JPEG"]))
def test_broken_containers_are_passed_over(noise: bytes, place: int, form: str) -> None:
    data = saved(form)
    mutated = data[:place] + noise + data[place + len(noise) :]
    for block in hidden_text(mutated):
        assert isinstance(block, bytes)
    leaks(mutated, GOLD)


@pytest.mark.parametrize(
    ("form", "ending"),
    [
        ("PNG", "png"), ("JPEG", "jpg"), ("GIF", "gif"), ("BMP", "bmp"), ("TIFF", "tif"),
        ("WEBP", "webp"), ("AVIF", "avif"), ("JPEG2000", "jp2"), ("ICO", "ico"), ("PPM", "ppm"),
    ],
)  # fmt: skip
def test_the_ending_is_the_real_format(form: str, ending: str) -> None:
    assert suffix(saved(form)) == ending
