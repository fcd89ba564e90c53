"""Sources of problems: the protocol, the finite source, and choosing problems from a source.

Covered: finite sources in memory, access by index and by id, seeded sampling. Not covered: reading files (see
``files``), procedural families (see ``procedural``), files larger than memory (see ``stream``).
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rstar2_env.core.errors import ProblemFormatError, UnknownNameError
from rstar2_env.core.options.declare import Count, check_option
from rstar2_env.problems.problem import Problem


class UnknownProblemError(UnknownNameError):
    """A source does not have a problem with the requested id."""

    def __init__(self, message: str) -> None:
        # Not the parent's message, which would list every id: a source can have thousands, or be unlimited.
        KeyError.__init__(self, message)


@runtime_checkable
class ProblemSource(Protocol):
    """Returns problems by index, by id, or at random. Immutable, so that threads and environments may share it.

    An unlimited source (a procedural family) has a problem for every index from 0 on, and no length.
    """

    @property
    def name(self) -> str:
        """Name of the source: a file's stem, or a family's name with its options."""
        ...

    @property
    def split(self) -> str:
        """Name of the source's split, such as "train", "validation" or "test"; "" if there is only one."""
        ...

    def __getitem__(self, index: int, /) -> Problem:
        """Return the problem with this index, counted from 0.

        Raises:
            IndexError: There is no problem with this index.
        """
        ...

    def __iter__(self) -> Iterator[Problem]:
        """The problems in the order of their index; never ends for an unlimited source."""
        ...

    def get(self, problem_id: str) -> Problem:
        """Return the problem with this id.

        Raises:
            UnknownProblemError: The source has no such problem; the message states which ids it has.
        """
        ...

    def sample(self, rng: np.random.Generator) -> Problem:
        """Return one problem at random, drawn with the caller's generator; global random state is not used."""
        ...


@runtime_checkable
class FiniteSource(ProblemSource, Protocol):
    """Protocol of a source with a finite number of problems."""

    @property
    def ids(self) -> Sequence[str]:
        """Every id, in the order of the indices."""
        ...

    def __len__(self) -> int:
        """Number of problems."""
        ...


class FixedSource:
    """Problems held in memory, in a fixed order.

    Args:
        problems: The problems, at least one, with distinct ids.
        name: Name of the source.
        split: Name of the split; "" if there is only one.

    Attributes:
        name: Name of the source.
        split: Name of the split.

    Raises:
        ProblemFormatError: There are no problems, or two of them have the same id.
    """

    def __init__(self, problems: Sequence[Problem], *, name: str = "problems", split: str = "train") -> None:
        self._problems = tuple(problems)
        self.name = name
        self.split = split
        if not self._problems:
            raise ProblemFormatError(f"{name} does not contain any problems: a source needs at least one problem.")
        self._index: dict[str, int] = {}
        for index, problem in enumerate(self._problems):
            first = self._index.setdefault(problem.id, index)
            if first != index:
                raise ProblemFormatError(
                    f"{name}: the problems {first} and {index} have the same id {problem.id!r}: give each "
                    "problem its own id."
                )

    @property
    def ids(self) -> tuple[str, ...]:
        """Every problem id, in order."""
        return tuple(self._index)

    def __len__(self) -> int:
        return len(self._problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems)

    def __getitem__(self, index: int, /) -> Problem:
        if not 0 <= index < len(self._problems):
            raise IndexError(
                f"{self.name} does not have a problem with the index {index}; its indices are 0 to {len(self) - 1}."
            )
        return self._problems[index]

    def get(self, problem_id: str) -> Problem:
        """Return the problem with this id.

        Raises:
            UnknownProblemError: The source has no such problem; the message suggests the closest ids.
        """
        index = self._index.get(problem_id)
        if index is None:
            near = difflib.get_close_matches(problem_id, self._index, n=3)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise UnknownProblemError(
                f"{self.name} has no problem {problem_id!r}.{hint} It has {len(self)} problems, from "
                f"{self._problems[0].id!r} to {self._problems[-1].id!r}."
            )
        return self._problems[index]

    def sample(self, rng: np.random.Generator) -> Problem:
        """Return one problem, drawn uniformly."""
        return self._problems[int(rng.integers(len(self._problems)))]

    def __deepcopy__(self, memo: dict[int, Any]) -> FixedSource:
        """The source itself, since it is immutable; a copied environment does not copy its problems."""
        return self

    def __repr__(self) -> str:
        return f"FixedSource(name={self.name!r}, split={self.split!r}, problems={len(self)})"


def choose(source: ProblemSource, count: int, *, seed: int = 0) -> list[Problem]:
    """Return the first ``count`` problems of ``choices``.

    Args:
        source: The source.
        count: Number of problems, at least 1.
        seed: Seed of the choice.

    Raises:
        ConfigurationError: ``count`` is below 1.
    """
    check_option("count", count, Count)
    return list(itertools.islice(choices(source, seed=seed), count))


def choices(source: ProblemSource, *, seed: int = 0) -> Iterator[Problem]:
    """Yield problems at random without end, reproducibly and with as few repetitions as possible.

    A finite source is used up completely, in a new random order each time, before a problem is repeated. For an
    unlimited source, a problem whose question was already chosen is replaced by another draw (a family with few
    instances may still repeat questions).

    Args:
        source: The source.
        seed: Seed of the choice.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    while isinstance(source, FiniteSource):
        yield from (source[int(index)] for index in rng.permutation(len(source)))
    questions: set[str] = set()
    while True:
        problem = source.sample(rng)
        for _ in range(_REDRAWS):
            if problem.question not in questions:
                break
            problem = source.sample(rng)
        questions.add(problem.question)
        yield problem


_REDRAWS = 20
