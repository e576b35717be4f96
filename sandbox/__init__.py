"""Runs Python cells in a box with hard limits.

    from sandbox import InputFile, Limits, open_box

    async with open_box("auto", inputs=[InputFile("image_1.png", data)]) as box:
        execution = await box.run("print(1)")

The names are resolved on first use: importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.errors import BoxLost as BoxLost
    from sandbox.errors import InputRefused as InputRefused
    from sandbox.errors import LimitsRefused as LimitsRefused
    from sandbox.errors import SandboxError as SandboxError
    from sandbox.errors import SandboxUnavailable as SandboxUnavailable
    from sandbox.outputs import Display as Display
    from sandbox.outputs import Error as Error
    from sandbox.outputs import Execution as Execution
    from sandbox.outputs import Stream as Stream
    from sandbox.session import Box as Box
    from sandbox.session import open_box as open_box
    from sandbox.spec import InputFile as InputFile
    from sandbox.spec import Limits as Limits

_HOMES = {
    "errors": ("BoxLost", "InputRefused", "LimitsRefused", "SandboxError", "SandboxUnavailable"),
    "outputs": ("Display", "Error", "Execution", "Stream"),
    "session": ("Box", "open_box"),
    "spec": ("InputFile", "Limits"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Box",
    "BoxLost",
    "Display",
    "Error",
    "Execution",
    "InputFile",
    "InputRefused",
    "Limits",
    "LimitsRefused",
    "SandboxError",
    "SandboxUnavailable",
    "Stream",
    "open_box",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sandbox' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sandbox.{_HOME_OF[name]}"), name)
