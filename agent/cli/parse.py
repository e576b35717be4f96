"""`pot parse`: what the runner reads from a reply, as one JSON line each."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from agent.cli.problem import Problem
from agent.cli.streams import read_text
from agent.dialects.parse import describe, replies


class DialectName(StrEnum):
    auto = "auto"
    tools = "tools"
    fenced = "fenced"
    tags = "tags"


class AnswerForm(StrEnum):
    tag = "tag"
    boxed = "boxed"
    letter = "letter"


def command(
    file: Annotated[
        str,
        typer.Argument(help="A reply: its text, a message, a completion or a list; - is stdin."),
    ] = "-",
    dialect: Annotated[DialectName, typer.Option(help="How code is written.")] = DialectName.auto,
    answer: Annotated[AnswerForm, typer.Option(help="How the answer is written.")] = AnswerForm.tag,
    choices: Annotated[str, typer.Option(help="Labels of --answer letter: A,B,…")] = "",
) -> None:
    """Show the code, the answer and the reasoning that a reply holds."""
    if answer is not AnswerForm.tag or choices:
        given = f"--answer {answer}" if answer is not AnswerForm.tag else "--choices"
        raise Problem(
            f"expected --answer tag, found {given}; this version reads <answer>…</answer> alone"
        )
    for reply in replies(read_text(file, "a reply")):
        line = json.dumps(describe(reply, dialect), ensure_ascii=False)
        # Bytes: a reply may hold what the terminal's encoding has no characters for.
        typer.echo(line.encode("utf-8", "replace"))
