"""What a kernel is told when it is forked."""

from __future__ import annotations

from dataclasses import dataclass

EXIT_NEVER_READY = 7
"""The supervisor's, when no kernel could be started before any cell had run: the host's fault."""
EXIT_NO_KERNEL = 5
"""The supervisor's, when an earlier cell left nothing to start one with: no memory, no folder."""
EXIT_HOST_MEMORY = 8
"""The supervisor's, when the machine ran out of memory and took a kernel of a box that was within
its own limit. The wall looks whether that can be."""


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """What the supervisor tells a kernel that it has forked."""

    work_dir: str
    state_dir: str
    """For the libraries' own files, hidden from the model's eyes."""
    address: str
    """Prefix of the ipc sockets: `-1` shell, `-2` iopub, `-3` stdin, `-4` control."""
    key: str
    """Signs the Jupyter messages."""
    seed: int
    max_pixels: int
    threads: int
