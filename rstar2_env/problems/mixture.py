"""A weighted mixture of sources.

Problem ``i`` of a mixture depends only on the seed and ``i``: a generator seeded with ``SeedSequence(seed, i)`` draws a
part according to the weights, and then a problem of the part. A mixture is unlimited and has no length. Not covered:
changing the weights during training, which is a sampler's task.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Rule, Seed, check_option
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.procedural import ProceduralSource
from rstar2_env.problems.source import ProblemSource, UnknownProblemError

_INDICES = 1 << 31


class MixtureSource:
    """Problems of several sources, drawn in proportion to their weights.

    The id of a problem begins with its part's name and the separator.

    Args:
        parts: Sources and their weights; a part of weight 0 is never drawn, but its problems can be requested by id.
        seed: Seed, 0 or more; each seed gives another unlimited sequence of problems.
        name: Name of the mixture; by default it is made from the names of the parts.
        separator: Text between a part's name and the rest of a problem's id.

    Attributes:
        parts: The sources, in the given order.
        name: Name of the mixture.
        split: The split of the parts; different splits are joined by slashes.

    Raises:
        ConfigurationError: There are no parts, two have the same name, or a weight is negative or not a number.
    """

    def __init__(
        self,
        parts: Sequence[tuple[ProblemSource, float]],
        *,
        seed: int = 0,
        name: str | None = None,
        separator: str = "/",
    ) -> None:
        for part in parts:
            if not isinstance(part, tuple) or len(part) != 2 or not isinstance(part[0], ProblemSource):
                raise ConfigurationError(
                    "A part of a mixture must be a pair of a source and a weight, such as "
                    f"(load_problems('arithmetic'), 1.0), not {part!r}."
                )
        self._parts = {source.name: source for source, _ in parts}
        weights = [weight for _, weight in parts]
        for weight in weights:
            check_option("weight", weight, float, Rule(least=0))
        if not sum(weights) > 0:
            raise ConfigurationError("A mixture needs at least one part with a weight above 0.")
        if len(self._parts) < len(parts):
            names = ", ".join(source.name for source, _ in parts)
            raise ConfigurationError(
                f"Two parts of a mixture have the same name ({names}): rename one of them with name=."
            )
        check_option("seed", seed, Seed)
        self.parts = tuple(source for source, _ in parts)
        self._shares = np.cumsum(np.asarray(weights, dtype=float) / sum(weights))
        self._weights, self._seed, self._separator = weights, seed, separator
        self.name = name or " + ".join(f"{weight:g} {source.name}" for source, weight in parts)
        self.split = "/".join(dict.fromkeys(source.split for source in self.parts if source.split))

    def id_of(self, part: ProblemSource, problem_id: str) -> str:
        """The id that a problem of a part has in the mixture."""
        return f"{part.name}{self._separator}{problem_id}"

    def __getitem__(self, index: int, /) -> Problem:
        if index < 0:
            raise IndexError(f"{self.name}: the index of a problem must be at least 0, not {index}.")
        entropy = np.random.SeedSequence(entropy=self._seed, spawn_key=(index,))
        rng = np.random.Generator(np.random.PCG64(entropy))
        at = min(int(np.searchsorted(self._shares, rng.random(), side="right")), len(self.parts) - 1)
        return self._named(self.parts[at], self.parts[at].sample(rng))

    def __iter__(self) -> Iterator[Problem]:
        """The problems from index 0 on; never ends."""
        return map(self.__getitem__, itertools.count())

    def get(self, problem_id: str) -> Problem:
        """Return the problem with this id.

        Raises:
            UnknownProblemError: No part has a problem with that id.
        """
        for name in sorted(self._parts, key=len, reverse=True):
            prefix = name + self._separator
            if problem_id.startswith(prefix):
                return self._named(self._parts[name], self._parts[name].get(problem_id.removeprefix(prefix)))
        raise UnknownProblemError(
            f"{self.name} has no problem {problem_id!r}: ids begin with the name of a part and {self._separator!r}; "
            f"the parts are {', '.join(self._parts)}."
        )

    def sample(self, rng: np.random.Generator) -> Problem:
        """Return the problem with a random index."""
        return self[int(rng.integers(_INDICES))]

    def __repr__(self) -> str:
        return f"MixtureSource({self.name!r}, split={self.split!r}, seed={self._seed})"

    def _named(self, source: ProblemSource, problem: Problem) -> Problem:
        return dataclasses.replace(problem, id=self.id_of(source, problem.id))

    def with_split(self, split: str) -> MixtureSource:
        """The same mixture, in which each part that generates its splits has the split ``split``."""
        parts = [(with_split(source, split), weight) for source, weight in zip(self.parts, self._weights, strict=True)]
        return MixtureSource(parts, seed=self._seed, name=self.name, separator=self._separator)


@dataclasses.dataclass(frozen=True, slots=True)
class LabelledSource:
    """The problems of another source, under a new name; the name also replaces ``Problem.source`` of every problem.

    Attributes:
        source: The other source.
        name: The new name.
    """

    source: ProblemSource
    name: str

    @property
    def split(self) -> str:
        """The split of ``source``."""
        return self.source.split

    def __getitem__(self, index: int, /) -> Problem:
        return self._labelled(self.source[index])

    def __iter__(self) -> Iterator[Problem]:
        return map(self._labelled, self.source)

    def get(self, problem_id: str) -> Problem:
        """Return the problem with this id.

        Raises:
            UnknownProblemError: The source has no problem with that id.
        """
        return self._labelled(self.source.get(problem_id))

    def sample(self, rng: np.random.Generator) -> Problem:
        """Return one problem at random."""
        return self._labelled(self.source.sample(rng))

    def with_split(self, split: str) -> LabelledSource:
        """Return a source with another split if ``source`` generates its splits; otherwise one with the same split."""
        return LabelledSource(with_split(self.source, split), self.name)

    def _labelled(self, problem: Problem) -> Problem:
        return dataclasses.replace(problem, source=self.name)


def with_split(source: ProblemSource, split: str) -> ProblemSource:
    """Return the source for another split if the source generates its splits; otherwise return it unchanged."""
    if isinstance(source, ProceduralSource):
        return dataclasses.replace(source, split=split)
    if isinstance(source, (MixtureSource, LabelledSource)):
        return source.with_split(split)
    return source
