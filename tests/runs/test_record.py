"""What is written of a result is what is read back, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.codec import CodecError
from agent.record import result_from_json, result_to_json
from agent.trajectory import Result
from tests.runs.results import failed, result


class Shelf:
    def __init__(self) -> None:
        self.pictures: dict[str, bytes] = {}

    def store(self, data: bytes, mime: str) -> str:
        name = f"{len(data)}-{mime.removeprefix('image/')}-{hash(data)}"
        self.pictures[name] = data
        return name

    def load(self, name: str) -> bytes:
        return self.pictures[name]


@pytest.mark.parametrize(
    "original", [result(), result(answer=None, value=0), result(value=None), failed()]
)
def test_round_trip(original: Result) -> None:
    shelf = Shelf()
    written = json.loads(json.dumps(result_to_json(original, shelf.store)))
    assert result_from_json(written, shelf.load) == original


def test_head_has_what_people_filter_by_and_no_picture_is_inline() -> None:
    shelf = Shelf()
    written = result_to_json(result(), shelf.store)
    assert {"id", "repeat", "task", "difficulty", "outcome", "score", "stop", "failure"} <= set(
        written
    )
    assert written["score"]["value"] == 1
    assert written["answer"] == written["target"] == "12, 7"
    assert len(shelf.pictures) == 2
    assert "iVBOR" not in json.dumps(written)
    assert result_to_json(failed(), shelf.store)["outcome"] == "failed"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 99}, "version 1, found 99"),
        ({"turns": None}, "turns"),
        ({"prompt": [1]}, "prompt"),
        ({"id": None}, "id"),
        ({"score": {"value": 7}}, "score"),
        ({"stop": "tired"}, "stop"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    shelf = Shelf()
    written = json.loads(json.dumps(result_to_json(result(), shelf.store)))
    with pytest.raises(CodecError, match=words):
        result_from_json({**written, **change}, shelf.load)


def test_a_missing_field_is_refused() -> None:
    shelf = Shelf()
    written = json.loads(json.dumps(result_to_json(result(), shelf.store)))
    del written["task"]
    with pytest.raises(CodecError, match="task"):
        result_from_json(written, shelf.load)
