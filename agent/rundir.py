"""The run directory: the truth about a run, and nothing that cannot be derived again from it.

config.json                 resolved settings and everything needed to know what was run
samples/<id>.<repeat>.json  one record a sample, there only when whole
images/<sha256>.<ext>       every picture once
replies/                    what the model said (`agent.models.cache`)
attempts/                   records that a later attempt replaced
aside/                      files that could not be read, kept for a person to look at
summary.json, report.html   derived
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from agent.codec import CodecError, Load
from agent.config import RunConfig, from_json
from agent.errors import RunDirBusy, RunDirError
from agent.files import faults_named, safe_name, write_whole
from agent.lock import held
from agent.record import result_from_json, result_to_json
from agent.stats import Item
from agent.trajectory import Result

Key = tuple[str, int]
"""Sample id and repeat."""
Note = Callable[[str], None]
"""Takes one line for the person who runs it."""

_PICTURE = re.compile(r"[0-9a-f]{64}\.(png|jpg)")
_FOLDERS = ("samples", "images", "replies")
_MENDED = {
    "config.json": "without its settings a run cannot go on: start a new one",
    "owed.json": "`pot run --resume` writes it again",
}
_LONGEST_ASIDE = 60
"""Characters that are kept of a name, of at most 4 bytes each: a disk takes 255 bytes."""


class RunDir:
    """One run on disk. Making the object touches nothing; `create` and `open` do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.samples = path / "samples"
        self.images = path / "images"
        self.replies = path / "replies"

    @staticmethod
    def refuse_taken(path: Path, *, force: bool = False) -> None:
        """Raises RunDirError when the path is taken by something else than an empty folder, or
        with `force` than a run. Asked early, so that nothing is done in vain."""
        if path.is_dir() and any(path.iterdir()):
            if not force:
                hint = f"`--resume {path}` continues it, --force starts it again"
                raise RunDirError(f"--out {path}: expected a new or empty folder; {hint}")
            if not (path / "config.json").is_file():
                raise RunDirError(f"--out {path}: not a run directory, so --force leaves it alone")

    @classmethod
    def create(cls, path: Path, *, force: bool = False) -> RunDir:
        """A new, empty run directory; with `force` in place of an old run.

        Raises:
            RunDirError: as `refuse_taken`, or it cannot be written to.
        """
        cls.refuse_taken(path, force=force)
        run, new = cls(path), not path.exists()
        try:
            with faults_named(path):
                path.mkdir(parents=True, exist_ok=True)
                with run.lock():
                    run._empty()
                    for name in _FOLDERS:
                        (path / name).mkdir(exist_ok=True)
        except RunDirError as error:
            if new and not isinstance(error, RunDirBusy):
                shutil.rmtree(path, ignore_errors=True)
            raise
        return run

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """An existing run.

        Raises:
            RunDirError: no `config.json` in it.
        """
        if not (path / "config.json").is_file():
            here = "a file" if path.exists() else "no such folder"
            found = "a folder without one" if path.is_dir() else here
            raise RunDirError(f"{path}: expected a run directory (with config.json), found {found}")
        run = cls(path)
        with faults_named(path):
            for name in _FOLDERS:
                (path / name).mkdir(exist_ok=True)
        return run

    def lock(self) -> AbstractContextManager[None]:
        """Holds the run for this process; ends with it, however it ends.

        Raises:
            RunDirBusy: another process holds it.
        """
        return held(self.path)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """`config.json` or `summary.json`, whole or not at all."""
        write_whole(self.path / name, _encode(value))

    def read_json(self, name: str) -> dict[str, Any]:
        """Raises RunDirError when the file is missing or torn."""
        try:
            found = json.loads((self.path / name).read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            hint = f"; {_MENDED[name]}" if name in _MENDED else ""
            raise RunDirError(f"{self.path / name}: cannot be read ({error}){hint}") from error
        if not isinstance(found, dict):
            raise RunDirError(f"{self.path / name}: expected an object")
        return cast("dict[str, Any]", found)

    def read_config(self) -> RunConfig:
        """The resolved settings in `config.json`.

        Raises:
            RunDirError: the file is missing or torn. ConfigError: the settings do not fit.
        """
        settings: object = self.read_json("config.json").get("config")
        if not isinstance(settings, dict):
            raise RunDirError(f"{self.path / 'config.json'}: expected settings under `config`")
        return from_json(cast("dict[str, Any]", settings), str(self.path / "config.json"))

    def write_owed(self, owed: Sequence[Item]) -> None:
        """`owed.json`: all that is to be done, so that what is missing can be counted."""
        rows = [dataclasses.astuple(item) for item in owed]
        write_whole(self.path / "owed.json", _encode({"items": rows}, indent=None))

    def read_owed(self) -> list[Item]:
        """Raises RunDirError when the file is missing or torn."""
        rows = self.read_json("owed.json").get("items")
        try:
            return [Item(str(i), int(n), str(t), str(g), str(d)) for i, n, t, g, d in rows or ()]
        except (TypeError, ValueError) as error:
            text = f"not as it was written; {_MENDED['owed.json']}"
            raise RunDirError(f"{self.path / 'owed.json'}: {text}") from error

    def record_path(self, key: Key) -> Path:
        return self.samples / f"{safe_name(key[0])}.{key[1]}.json"

    def write(self, result: Result, *, keep_old: bool = True) -> None:
        """Puts a result on disk: its pictures first, then the record, by rename.

        A record that it replaces moves to `attempts/`, unless `keep_old` is False.

        Raises:
            DiskFull: the record is not there then.
        """
        data = _encode(result_to_json(result, self.store))
        path = self.record_path((result.id, result.repeat))
        if keep_old and path.exists():
            _move_to(path, self.path / "attempts")
        write_whole(path, data)

    def store(self, data: bytes, mime: str) -> str:
        """Puts a picture away once and returns its name under `images/`."""
        name = f"{hashlib.sha256(data).hexdigest()}.{'jpg' if mime == 'image/jpeg' else 'png'}"
        if not (self.images / name).exists():
            write_whole(self.images / name, data)
        return name

    def load(self, name: str) -> bytes:
        """The picture of that name; CodecError when it is missing or is not what its name says."""
        if not _PICTURE.fullmatch(name):
            raise CodecError(f"picture: expected <sha256>.png or .jpg, found {name[:80]!r}")
        try:
            data = (self.images / name).read_bytes()
        except OSError as error:
            raise CodecError(f"picture: images/{name} cannot be read") from error
        if hashlib.sha256(data).hexdigest() != name[:64]:
            raise CodecError(f"picture: images/{name} is not what its name says")
        return data

    def read(self, path: Path, load: Load | None = None) -> Result:
        """One record; `load` in place of `self.load` where the pictures are not needed.

        Raises:
            CodecError: torn, foreign, of another sample, or one of its pictures is gone.
        """
        if path.is_symlink() or not path.is_file():
            raise CodecError("expected a plain file")  # a pipe would keep us waiting
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise CodecError(f"not a whole JSON file ({error})") from error
        if not isinstance(found, dict):
            raise CodecError("expected an object")
        result = result_from_json(cast("dict[str, Any]", found), load or self.load)
        if self.record_path((result.id, result.repeat)) != path:
            raise CodecError(f"it is the record of {result.id!r}, repeat {result.repeat}")
        return result

    def results(
        self, note: Note | None = None, *, pictures: bool = False, move: bool = True
    ) -> Iterator[Result]:
        """Every readable record, in order of file name; without `pictures` theirs are empty bytes.

        With `note` the others move to `aside/` (unless `move` is False) and a line says so; without
        it the first one that cannot be read raises RunDirError.
        """
        for path in sorted(self.samples.iterdir()):
            if path.suffix == ".part":
                continue
            try:
                result = self.read(path, self.load if pictures else self._there)
            except CodecError as error:
                if note is None:
                    hint = f"`pot run --resume {self.path}` sets it aside"
                    raise RunDirError(f"{path}: cannot be used: {error}; {hint}") from error
                if move:
                    _move_to(path, self.path / "aside")
                shown = path.name.encode("unicode_escape").decode()
                note(f"set aside samples/{shown}: {error}")
            else:
                yield result

    def remove_if_empty(self) -> None:
        """Takes a run away again in which nothing was recorded."""
        if not any(self.samples.iterdir()) and not any(self.replies.iterdir()):
            shutil.rmtree(self.path)

    def sweep(self) -> None:
        """Removes what a killed process left of its writes; for the holder of the lock."""
        for folder in (self.path, self.samples, self.images, self.replies):
            for part in folder.glob(".*.part"):
                if part.is_file():
                    part.unlink(missing_ok=True)

    def _there(self, name: str) -> bytes:
        """As `load`, without reading: a picture that is missing is still found out."""
        if not _PICTURE.fullmatch(name) or not (self.images / name).is_file():
            raise CodecError(f"picture: images/{name[:80]!r} is missing")
        return b""

    def _empty(self) -> None:
        for entry in self.path.iterdir():
            if entry.name in (".lock", ".held"):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def default_path(benchmark: str, model: str, root: Path = Path("runs")) -> Path:
    """`runs/<date>-<benchmark>-<model>`, not yet taken."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", model.lower()).strip("-.")[:60] or "model"
    base = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{safe_name(benchmark)}-{slug}"
    path, number = root / base, 1
    while path.exists():
        number += 1
        path = root / f"{base}-{number}"
    return path


def _move_to(path: Path, folder: Path) -> None:
    with faults_named(folder):
        folder.mkdir(exist_ok=True)
        number, name = 0, path.name[:_LONGEST_ASIDE]
        while os.path.lexists(target := folder / f"{name}.{number}"):
            number += 1
        path.rename(target)


def _encode(value: Mapping[str, Any], indent: int | None = 1) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return (text + "\n").encode("utf-8", "replace")  # a lone surrogate is not worth a sample
