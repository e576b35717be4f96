"""The options that `pot run` and `pot ask` share, in one table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

SHARED: dict[str, Any] = {
    "model": Annotated[
        str | None,
        typer.Option(
            "--model", help="Name at the endpoint, or scripted, replay:RUN, human; see pot list."
        ),
    ],
    "base_url": Annotated[
        str | None,
        typer.Option(help="OpenAI-compatible endpoint; else OPENAI_BASE_URL, from .env too."),
    ],
    "api": Annotated[str | None, typer.Option(help="chat.")],
    "arm": Annotated[
        str | None, typer.Option(help="code; look: no sandbox; blind: the picture is not sent.")
    ],
    "dialect": Annotated[str | None, typer.Option(help="auto, tools, fenced or tags.")],
    "sandbox": Annotated[
        str | None,
        typer.Option(
            help="auto, docker, bubblewrap, or process (no isolation: trusted code only)."
        ),
    ],
    "image_tag": Annotated[str | None, typer.Option(help="Docker image; see pot image build.")],
    "runtime": Annotated[str | None, typer.Option(help="Docker's --runtime, e.g. runsc.")],
    "memory_mb": Annotated[int | None, typer.Option(help="MiB a box. [default: 2048]")],
    "cpus": Annotated[float | None, typer.Option(help="CPUs a box. [default: 1]")],
    "max_turns": Annotated[int | None, typer.Option(help="Replies of the model. [default: 5]")],
    "token_limit": Annotated[
        int | None, typer.Option(help="Completion tokens, reasoning too. [default: 40960]")
    ],
    "cell_seconds": Annotated[
        float | None, typer.Option(help="Wall time of a cell. [default: 30]")
    ],
    "time_limit": Annotated[
        float | None, typer.Option(help="Seconds of thinking and cells in all. [default: 600]")
    ],
    "temperature": Annotated[float | None, typer.Option(help="Sent when given.")],
    "top_p": Annotated[float | None, typer.Option(help="Sent when given.")],
    "max_tokens": Annotated[int | None, typer.Option(help="Of one reply; sent when given.")],
    "extra_body": Annotated[str | None, typer.Option(help="JSON object merged into each request.")],
    "header": Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE, sent with each request; may repeat.")
    ],
    "request_timeout": Annotated[
        float | None, typer.Option(help="Seconds a request. [default: 300]")
    ],
    "system_prompt": Annotated[
        Path | None, typer.Option(help="File whose text replaces the prompt's first part.")
    ],
    "skills": Annotated[
        list[Path] | None, typer.Option(help="File with a short text for the prompt; may repeat.")
    ],
    "max_images": Annotated[int | None, typer.Option(help="Pictures a request. [default: 16]")],
    "max_pixels": Annotated[int | None, typer.Option(help="Pixels a picture. [default: 2359296]")],
    "seed": Annotated[int | None, typer.Option(help="Of boxes, and of sampling when given.")],
    "config": Annotated[
        Path | None, typer.Option(help="TOML or JSON file of settings; flags win over it.")
    ],
}
"""Name of the parameter → its type and option. None is what was not given."""


def shared(command: Callable[..., None]) -> Callable[..., None]:
    """The command with all of these options, which it is handed as its `**settings`."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    plain = [parameter for parameter in own if parameter.kind is not parameter.VAR_KEYWORD]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in SHARED.items()
    ]
    command.__signature__ = inspect.Signature([*plain, *more])  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ |= SHARED
    return command
