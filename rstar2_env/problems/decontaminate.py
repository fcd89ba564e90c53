"""Removes problems that share a word n-gram with a benchmark, 8 words by default (arXiv 2508.20722, section 5.1).

Covered: overlap of questions by word n-grams, ignoring case, punctuation and the braces of mathematical mark-up;
equality for questions shorter than an n-gram. Not covered: the same problem in other words or with other numbers, which
no n-gram finds.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, checked
from rstar2_env.problems.problem import Problem

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Overlap:
    """The n-gram that a removed problem shares with a benchmark.

    Attributes:
        problem_id: Id of the problem.
        benchmark: Name of the benchmark that the problem overlaps.
        benchmark_id: Id of the benchmark's problem.
        words: The words of the n-gram.
    """

    problem_id: str
    benchmark: str
    benchmark_id: str
    words: str

    def to_dict(self) -> dict[str, str]:
        """Return the overlap as JSON values, for one line of a report."""
        return {
            "id": self.problem_id,
            "benchmark": self.benchmark,
            "benchmark_id": self.benchmark_id,
            "words": self.words,
        }


@dataclass(slots=True)
class Decontaminated:
    """The result of a decontamination.

    Attributes:
        kept: Number of problems without an overlap.
        dropped: The overlap of each removed problem.
    """

    kept: int = 0
    dropped: list[Overlap] = field(default_factory=list)

    def by_benchmark(self) -> dict[str, int]:
        """Number of removed problems for each benchmark."""
        return dict(Counter(overlap.benchmark for overlap in self.dropped).most_common())

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "kept": self.kept,
            "dropped": len(self.dropped),
            "by_benchmark": self.by_benchmark(),
            "why": [overlap.to_dict() for overlap in self.dropped],
        }


class Benchmarks:
    """The n-grams of some benchmarks.

    Args:
        against: The problems of each benchmark, by the benchmark's name.
        ngram: Number of words of an n-gram, at least 1.

    Raises:
        ConfigurationError: ``ngram`` is below 1, or there are no benchmarks.
    """

    @checked
    def __init__(self, against: Mapping[str, Iterable[Problem]], *, ngram: Count = 8) -> None:
        if not against:
            raise ConfigurationError("Decontamination needs at least one benchmark to compare with.")
        self._ngram = ngram
        self._runs: dict[bytes, tuple[str, str]] = {}
        for name, problems in against.items():
            for problem in problems:
                for key, _ in self._keys(problem.question):
                    self._runs.setdefault(key, (name, problem.id))

    def overlap(self, problem: Problem) -> Overlap | None:
        """The first n-gram that a problem has in common with a benchmark, or ``None``."""
        for key, words in self._keys(problem.question):
            if (found := self._runs.get(key)) is not None:
                return Overlap(problem.id, *found, words)
        return None

    def _keys(self, question: str) -> Iterator[tuple[bytes, str]]:
        words = normal_words(question)
        if not words:
            return
        if len(words) < self._ngram:
            text = " ".join(words)
            yield _digest(f"whole: {text}"), text
        for at in range(len(words) - self._ngram + 1):
            run = " ".join(words[at : at + self._ngram])
            yield _digest(run), run


def normal_words(text: str) -> list[str]:
    """The words and numbers of a text in lower case, without punctuation and mark-up."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


def _digest(run: str) -> bytes:
    # 16 bytes instead of the text: 100,000 n-grams fit into a few megabytes, and collisions are negligible.
    return hashlib.blake2b(run.encode("utf-8", "surrogatepass"), digest_size=16).digest()
