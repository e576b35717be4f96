"""Photographs for the generators: which ones there are, which split each belongs to, their pixels.

Photos of train and validation items and of test items never overlap. Three sources: a folder with
`train2017/` and `val2017/` (by folder), any other folder (by a hash of the file name), and the
sample photographs that scikit-image and scikit-learn carry (by a table).
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageOps

from benchmarks.cwi.item import SIDE, Pixels
from benchmarks.errors import DataError

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})
_LEAST_SIDE = 64
_FOLDERS: dict[bool, str] = {False: "train2017", True: "val2017"}
_BUILT_IN: dict[bool, tuple[str, ...]] = {
    False: (
        "skimage/data/astronaut.png",
        "skimage/data/coins.png",
        "skimage/data/ihc.png",
        "skimage/data/motorcycle_left.png",
        "skimage/data/rocket.jpg",
        "sklearn/datasets/images/flower.jpg",
    ),
    True: (
        "skimage/data/camera.png",
        "skimage/data/chelsea.png",
        "skimage/data/coffee.png",
        "skimage/data/hubble_deep_field.jpg",
        "skimage/data/retina.jpg",
        "sklearn/datasets/images/china.jpg",
    ),
}
"""Whether for the test split → files of the installed packages. Those of the lists are shipped in
the wheels; nothing is downloaded."""


@dataclass(frozen=True, slots=True)
class Photo:
    id: str
    """Relative to the folder that was given, or to the installed packages."""
    path: Path


def photos(folder: Path | None, split: Split) -> tuple[Photo, ...]:
    """The photographs for this split, sorted by id; None: the built-in ones.

    Raises:
        DataError: no folder, or no photograph for this split in it.
    """
    test = split == "test"
    found = _built_in(test) if folder is None else _from_folder(folder, test=test)
    if not found:
        raise DataError(
            f"expected photographs ({', '.join(sorted(_SUFFIXES))}) for {split} items in {folder}, "
            f"found none; put some in {folder}/{_FOLDERS[test]} or more into the folder"
        )
    return tuple(sorted(found, key=lambda photo: photo.id))


@functools.lru_cache(maxsize=16)
def pixels(path: Path) -> Pixels:
    """The centre square of the photograph, 480 × 480 RGB; greyscale becomes RGB. Read-only.

    Raises:
        DataError: the file is no picture, or smaller than 64 pixels.
    """
    try:
        with Image.open(path) as opened:
            picture = _as_rgb(ImageOps.exif_transpose(opened))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as problem:
        raise DataError(
            f"expected a photograph, {path} cannot be decoded ({problem}); remove it"
        ) from None
    side = min(picture.size)
    if side < _LEAST_SIDE:
        width, height = picture.size
        raise DataError(
            f"expected a photograph of at least {_LEAST_SIDE} x {_LEAST_SIDE} pixels, {path} has "
            f"{width} x {height}; remove it"
        )
    left, top = ((length - side) // 2 for length in picture.size)
    square = picture.crop((left, top, left + side, top + side))
    values = np.array(square.resize((SIDE, SIDE), Image.Resampling.LANCZOS))
    values.setflags(write=False)
    return values


def _as_rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith(("I", "F")):  # 16 bits: Pillow's own conversion clips at 255
        levels = np.asarray(picture, dtype=np.float64)
        top = max(float(levels.max()), 1.0)
        picture = Image.fromarray((levels * (255 / top)).clip(0, 255).astype(np.uint8))
    return picture.convert("RGB")


def _from_folder(folder: Path, *, test: bool) -> list[Photo]:
    if not folder.is_dir():
        raise DataError(f"expected a folder of photographs, found none at {folder}")
    named = any((folder / name).is_dir() for name in _FOLDERS.values())
    root = folder / _FOLDERS[test] if named else folder
    files = [path for path in root.rglob("*") if path.suffix.lower() in _SUFFIXES]
    return [
        Photo(path.relative_to(folder).as_posix(), path)
        for path in files
        if path.is_file() and (named or _is_test(path.name) == test)
    ]


def _is_test(name: str) -> bool:
    """The rule for folders without train2017 and val2017: even SHA-256 of the file's name → test.
    It looks at nothing else, so a photo stays on its side when others come or go."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[-1] % 2 == 0


def _built_in(test: bool) -> list[Photo]:
    return [Photo(name, _package_folder(name) / name) for name in _BUILT_IN[test]]


def _package_folder(name: str) -> Path:
    """Where the package of a built-in photo is installed, without importing it."""
    package = name.partition("/")[0]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            f"expected the package {package}, which carries {name}; it is not installed"
        )
    return Path(next(iter(spec.submodule_search_locations))).parent
