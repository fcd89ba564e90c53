"""Puzzles: a family with knobs (difficulty options), and its functions ``draw``, ``solves`` and ``guess``.

Covered: the base class, its problem source, its grader. Not covered: the environment (``rstar2_env.env.puzzle_env``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from rstar2_env.problems import Draft, Problem, ProceduralSource
from rstar2_env.verification import Reason, Verdict
from rstar2_env.worlds.family import Family
from rstar2_env.worlds.reading import LONGEST_ANSWER

T = TypeVar("T")
Meta: TypeAlias = Mapping[str, Any]
"""``Problem.meta`` of a puzzle: everything that its ``solves`` reads."""


class UnreadableAnswerError(ValueError):
    """An answer does not have the form that the puzzle documents; its reward is 0."""


@dataclass(frozen=True)
class Puzzle(Family, ABC):
    """A family of puzzles at one difficulty.

    An instance is a ``Problem`` whose ``meta`` contains everything that ``solves`` reads, as JSON values, so that an
    instance can be saved to a file and graded anywhere.
    """

    @abstractmethod
    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw one instance with its reference answer.

        A family whose instances are expensive to generate should check ``split_of(key) == split`` as soon as it knows
        ``Draft.key``, and return ``None`` early; the caller checks the split of a returned instance again.

        Args:
            rng: The only source of randomness.
            split: The requested split.

        Returns:
            The instance, or ``None`` if the draw failed and must be repeated.
        """

    @abstractmethod
    def solves(self, meta: Meta, answer: str) -> bool:
        """Whether the answer solves the instance. Any right answer counts, not only the reference answer.

        Args:
            meta: ``Problem.meta`` of the instance.
            answer: The policy's answer, as the dialect extracts it: at most ``LONGEST_ANSWER`` characters.

        Raises:
            UnreadableAnswerError: The answer does not have the documented form.
        """

    @abstractmethod
    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        """A sensible random answer of the right form, for the random baseline."""

    def source(self, split: str = "train", seed: int = 0) -> ProceduralSource:
        """Return the problems of one split of the family, at this difficulty.

        Args:
            split: "train", "validation" or "test".
            seed: Each seed gives a different sequence of problems.

        Raises:
            ConfigurationError: There is no such split, or the seed is not an integer of at least 0.
        """
        return ProceduralSource(self.named(seed=seed), partial(self.draw, split=split), split, seed)

    @classmethod
    def family(cls, *, split: str = "train", seed: int = 0, **knobs: Any) -> ProceduralSource:
        """Return the problems of one split; the registry of problem families calls this with the knobs as options.

        Args:
            split: "train", "validation" or "test".
            seed: Each seed gives a different sequence of problems.
            **knobs: The family's knobs.

        Raises:
            ConfigurationError: There is no such knob, split or seed, or a value is out of range.
        """
        return cls.with_knobs(knobs).source(split, seed)


@dataclass(frozen=True, slots=True)
class PuzzleGrader:
    """Grades with the puzzle's own verifier, in this process, since that verifier cannot hang.

    Args:
        puzzle: The family whose ``solves`` decides whether an answer is correct.
    """

    puzzle: Puzzle

    def __call__(self, problem: Problem, answer: str) -> Verdict:
        """Return whether the answer solves the problem."""
        if len(answer) > LONGEST_ANSWER:
            return Verdict(False, Reason.TOO_LARGE, self.puzzle.name)
        try:
            correct = self.puzzle.solves(problem.meta, answer)
        except UnreadableAnswerError:
            return Verdict(False, Reason.UNPARSABLE_ANSWER, self.puzzle.name)
        return Verdict(correct, Reason.EQUAL if correct else Reason.DIFFERENT, self.puzzle.name)


def pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    """One of the choices, drawn uniformly."""
    return choices[int(rng.integers(len(choices)))]


def shuffled(rng: np.random.Generator, items: Sequence[T]) -> list[T]:
    """The items in random order."""
    return [items[int(index)] for index in rng.permutation(len(items))]
