"""What can go wrong with one call of a model. Each text is one line and never holds a key.

ModelError
├── ModelUnavailable     cannot be reached, or keeps failing; retries are over. Others may do better
├── ModelRefused         the server refuses this request; its own words are in the text
│   └── AccessRefused    it would refuse every other one as well: key, permission, address, model
│                        name, quota, no picture input. A run should stop
└── ContextFull          the conversation is longer than the model, or the server, takes

The loop ends a sample with `context_full` on the last; all others become its `Failure`.
"""


class ModelError(Exception):
    """Root of the tree above."""


class ModelUnavailable(ModelError):
    """The server cannot be reached or keeps failing, and the time for retries is over."""


class ModelRefused(ModelError):
    """The server refuses this request; asking again would not help."""


class AccessRefused(ModelRefused):
    """The server would refuse any request made with these settings."""


class ContextFull(ModelError):
    """The request is longer than the model's context or the server's limit."""
