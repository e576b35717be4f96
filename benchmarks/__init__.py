"""Questions and scoring: benchmarks by name, their samples, the score of a response."""

from benchmarks.answers import answer_span
from benchmarks.errors import BenchmarkError, DataError, GoldError
from benchmarks.registry import load, score_response, score_span
from benchmarks.sample import Outcome, Picture, Sample, Score, Stage

__all__ = [
    "BenchmarkError",
    "DataError",
    "GoldError",
    "Outcome",
    "Picture",
    "Sample",
    "Score",
    "Stage",
    "answer_span",
    "load",
    "score_response",
    "score_span",
]
