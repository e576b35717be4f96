"""What can go wrong outside a cell.

SandboxError                 every error of this package
├── SandboxUnavailable       no wall of the asked kind works here; the text says what to install
├── InputRefused             a file for /mnt/data cannot be used: its name, its hash
├── LimitsRefused            a box cannot have such limits here: more CPUs than there are
├── WireError                a frame is malformed, too long or out of place
└── BoxLost                  the box is gone and no cell caused it (infrastructure)

What a cell does (exceptions, timeouts, a dead kernel) is never an error here: it is data, a value
of `sandbox.outputs.Execution`.
"""


class SandboxError(Exception):
    """Root of the tree above."""


class SandboxUnavailable(SandboxError):
    """No box can be made here; the message names what is missing and how to get it."""


class InputRefused(SandboxError):
    """A file meant for the box cannot be used."""


class LimitsRefused(SandboxError):
    """Limits that no box on this host can have."""


class WireError(SandboxError):
    """The peer sent something that is not a valid frame."""


class BoxLost(SandboxError):
    """The box ended and no cell caused it: daemon gone, container removed, host disk full."""
