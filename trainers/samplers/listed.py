"""``Listed``: the problems of a run as a list to choose from, for samplers that record results per problem.

Covered: finite sources, a list of fixed length from an unlimited source, shuffled passes over the allowed problems. Not
covered: deciding which problems are allowed (the samplers).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import Start

_TRIES = 20
"""Maximum number of samples drawn for each problem from an unlimited source, since samples may repeat."""


class Listed(SavedAttributes):
    """A list of problems, and draws from it in shuffled passes.

    Args:
        ids: Ids of the problems of a finite source, else ``None``.
        problems: The environment's source of problems.
        pool: Number of problems to take from an unlimited source.
        seed: Seed of the list, of the passes and of the starts.

    Attributes:
        ids: Ids of the problems in the list, in its order.
        place: Position of each problem in ``ids``, by its id.
        drawn: Number of starts so far.

    Raises:
        ConfigurationError: There are no problems, or the environment has no source of problems.
    """

    saved = ("_cursor", "drawn")

    def __init__(self, ids: Sequence[str] | None, problems: ProblemSource | None, pool: int, seed: int) -> None:
        self.ids = _chosen(problems, pool, seed) if ids is None else list(ids)
        if not self.ids:
            raise ConfigurationError(
                "There is no problem to draw, because the list of problem ids is empty: give at least one id."
            )
        self.place = {name: place for place, name in enumerate(self.ids)}
        self.drawn = 0
        self._seed, self._cursor = seed, 0
        self._pass: tuple[int, list[int]] = (-1, [])

    def __len__(self) -> int:
        """Number of problems."""
        return len(self.ids)

    @property
    def passes(self) -> int:
        """Number of completed passes."""
        return self._cursor // len(self.ids)

    def draw(self, n: int, allowed: Collection[int]) -> list[Start]:
        """Return starts for the next ``n`` problems at the positions ``allowed``; an empty set allows all positions."""
        within, found = set(allowed), list[Start]()
        while len(found) < n:
            if (place := self.next()) in within or not within:
                found.append(self.start(place))
        return found

    def start(self, place: int) -> Start:
        """Return a ``Start`` with the problem at a position of the list, and with a new seed."""
        self.drawn += 1
        word = np.random.SeedSequence([self._seed, self.drawn, 2]).generate_state(1, np.uint64)[0]
        return Start(int(word >> np.uint64(1)), {"problem_id": self.ids[place]})

    def next(self) -> int:
        """Return the position of the next problem of the pass; after the last problem, a new pass starts."""
        number, within = divmod(self._cursor, len(self.ids))
        self._cursor += 1
        if self._pass[0] != number:
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, number, 1]))
            self._pass = (number, rng.permutation(len(self.ids)).tolist())
        return self._pass[1][within]


def _chosen(problems: ProblemSource | None, pool: int, seed: int) -> list[str]:
    if problems is None:
        raise ConfigurationError(
            "This sampler records the results of each problem, but the environment has no source of problems and "
            "chooses its problems by the seed. Use an environment with problems, or the sampler 'uniform'."
        )
    rng = np.random.default_rng(np.random.SeedSequence([seed, pool, 3]))
    found: dict[str, None] = {}
    for _ in range(_TRIES * pool):
        if len(found) == pool:
            break
        found[problems.sample(rng).id] = None
    return list(found)
