"""What can be wrong with questions and answers before any model is asked.

BenchmarkError         every error of this package; one line of text: expected, found, what to do
├── DataError          a data folder, a row or a picture cannot be used; names the file and the row
│   └── DataUnavailable  data of the Hub cannot be had now: gated, offline, the Hub is not there
└── GoldError          a gold answer does not parse, or does not score 1 against itself
"""


class BenchmarkError(Exception):
    """Root of the tree above."""


class DataError(BenchmarkError):
    """A data folder, row or picture cannot be used."""


class DataUnavailable(DataError):
    """Data of the Hub cannot be had by this user, at this moment, from this machine."""


class GoldError(BenchmarkError):
    """A gold answer is not of its task's type or fails against itself."""
