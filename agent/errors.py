"""What can go wrong with a run as a whole; each text is one line: expected, found, what to do.

AgentError
├── ConfigError        a setting or a config file cannot be used
├── RunDirError        a run directory cannot be used: foreign, not empty, another config
│   ├── RunDirBusy     another process holds it
│   └── DiskFull       a record cannot be written; everything marked done is on disk
├── InputProblem       a sample's picture cannot be used; becomes that sample's `Failure`
└── NothingRan         no sample could be run at all: endpoint, key, box, data

Other faults of one sample are none of these: they become a `Failure` in that sample's record.
Faults of one model call are `agent.models.errors`, of a box `sandbox.errors`.
"""


class AgentError(Exception):
    """Root of the tree above."""


class ConfigError(AgentError):
    """A setting is unknown, of the wrong type or out of range."""


class RunDirError(AgentError):
    """A run directory cannot be used as asked."""


class RunDirBusy(RunDirError):
    """Another process is writing to this run directory."""


class DiskFull(RunDirError):
    """No space left under the run directory."""


class InputProblem(AgentError):
    """A picture of one sample is no picture, is damaged or far too large."""


class NothingRan(AgentError):
    """The run stopped before any sample had a result, and why."""
