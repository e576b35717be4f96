"""JSON as models write it: each slip alone, and the complaints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent import loose_json

A: dict[str, Any] = {"code": "a()"}
READ: dict[str, tuple[str, object]] = {
    "plain": ('{"code": "a()"}', A),
    "white space": ('\n\t{"code": "a()"} ', A),
    "byte order mark": ('\ufeff{"code": "a()"}', A),
    "fence": ('```json\n{"code": "a()"}\n```', A),
    "fence, upper case": ('```JSON {"code": "a()"}```', A),
    "encoded five times": (json.dumps(json.dumps(json.dumps(json.dumps(json.dumps(A))))), A),
    "text that only begins like JSON": (json.dumps("{not json"), "{not json"),
    "text in text": (json.dumps(json.dumps("a()")), "a()"),
    "text with a quote": (json.dumps('"a" + b'), '"a" + b'),
    "breaks between members": ('{\\n"code":\\t"a()"\\r\\n}', A),
    "breaks before": ('\\n{"code": "a()"}', A),
    "brackets too many": ('{"code": "a()"}}])', A),
    "wrong escapes": (r'{"code": "\d\."}', {"code": r"\d\."}),
    "wrong escape beside a right one": (r'{"code": "\d\n\\"}', {"code": "\\d\n\\"}),
    "escaped as a whole": (r'{\"code\": \"a()\"}', A),
    "Python": ("{'code': 'a()', }", A),
    "Python, no object": ("{'a', 'b'}", None),
    "Python, no literal": ("{'code': a()}", None),
    "Python, two lines": ('{"a": 1}\n{"b": 2}', None),
    "Python, unhashable": ("{[]: 1}", None),
    "list": ('["a()"]', ["a()"]),
    "only a number": ("5", None),
    "true": ("true", None),
    "long number": ('{"n": ' + "9" * 5000 + "}", {"n": 0}),
    "number": ('{"n": ' + "9" * 300 + "}", {"n": int("9" * 300)}),
    "broken": ('{"code": ', None),
    "escaped and broken": (r'{\"code\": \"a()"', None),
    "too deep": ("[" * 100_000, None),
    "empty": ("", None),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_load(name: str) -> None:
    text, value = READ[name]
    found, problem = loose_json.load(text)
    assert found == value
    assert bool(problem) == (value is None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("5", "not an object"),
        ("null", "not an object"),
        ('{"code": "a()" 5}', "Expecting ',' delimiter: line 1 column 16 (char 15)"),
        ('{"a": 1} {"b": 2}', "Extra data: char 8"),
        (r'{"a": "\d" 5}', "Invalid \\escape: line 1 column 8 (char 7)"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_the_first_complaint_is_told(text: str, problem: str) -> None:
    assert loose_json.load(text) == (None, problem)


def test_strict_json_of_any_numbers_and_any_depth() -> None:
    assert loose_json.parse('{"n": ' + "9" * 5000 + "}") == {"n": 0}
    assert loose_json.parse("9" * 3999) == int("9" * 3999)
    for text in ("[" * 100_000, "{'a': 1}", ""):
        with pytest.raises(ValueError):
            loose_json.parse(text)


def test_values_of_any_depth_are_written() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert loose_json.dump(deep) == ""
    assert loose_json.dump({"é": [1, None]}) == '{"é": [1, null]}'
