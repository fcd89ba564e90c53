"""``Kinds``: the problems of a run, grouped by kind, for samplers that choose a kind instead of a problem.

Kinds are the parts of a mixture, or the values of a field of the problems in a finite source (``source``, ``level``).
Covered: finding the kinds, and drawing problems of a kind. Not covered: choosing the next kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import FiniteSource, MixtureSource, ProblemSource
from rstar2_env.problems.filters import field_of

from .base import Start
from .uniform import Uniform


class Kinds:
    """Draws problems of a given kind: in shuffled passes if the kind is finite, else as new samples.

    Args:
        problems: The environment's source of problems.
        by: The field whose values are the kinds, if the source is not a mixture.
        order: Names of the kinds to use, in order. By default all kinds are used: numbers in ascending order, names in
            the order in which they occur.
        seed: Seed of the shuffled passes and of the new samples; the seeds of the starts are derived from it too.

    Attributes:
        names: Names of the kinds, in order.

    Raises:
        ConfigurationError: There are fewer than two kinds, a problem does not have the field, or ``order`` names an
            unknown kind.
    """

    def __init__(
        self, problems: ProblemSource | None, by: str = "source", order: Sequence[str] = (), *, seed: int = 0
    ) -> None:
        found = _parts(problems) if isinstance(problems, MixtureSource) else _fields(problems, by)
        for name in order:
            if name not in found:
                raise ConfigurationError(
                    f"The option `order` names {name!r}, but the problems do not have this kind. Kinds: "
                    f"{_names(found)}."
                )
        self.names = tuple(order or found)
        if len(self.names) < 2:
            raise ConfigurationError(
                f"This sampler needs at least two kinds of problems; there is only {self.names[0]!r}. Use a mixture "
                '(problems={"mix": [...]}) or a finite source whose problems differ in the field '
                f"{by!r}, or name another field with the option `by`."
            )
        self._problems, self._seed = problems, seed
        self._parts = {name: found[name] for name in self.names}
        self._orders = {
            name: Uniform(ids if isinstance(ids, list) else None, _seed(seed, list(found).index(name)))
            for name, ids in self._parts.items()
        }

    def draw(self, name: str) -> Start:
        """Return the start of the next group, with a problem of the kind ``name``."""
        (start,) = self._orders[name].draw(1)
        part, mixture = self._parts[name], self._problems
        if isinstance(part, list):
            return Start(start.seed, start.options, name)
        assert isinstance(mixture, MixtureSource)  # other sources are finite
        problem = part.sample(np.random.default_rng(start.seed))
        return Start(start.seed, {"problem_id": mixture.id_of(part, problem.id)}, name)

    def draw_by(self, shares: Mapping[str, float], n: int, *, before: int) -> list[Start]:
        """Return the starts of the next groups, whose kinds are drawn with the probabilities ``shares``.

        Args:
            shares: Probability of each kind; they sum to 1.
            n: Number of starts.
            before: Number of starts drawn so far; the draws depend on it.
        """
        names, chances = list(shares), list(shares.values())
        rngs = [np.random.default_rng(np.random.SeedSequence([self._seed, before + at, 6])) for at in range(n)]
        return [self.draw(names[int(rng.choice(len(names), p=chances))]) for rng in rngs]

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values; see ``Sampler``."""
        return {name: order.state_dict() for name, order in self._orders.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned; see ``Sampler``."""
        for name, order in self._orders.items():
            order.load_state_dict(state[name])


def _parts(mixture: MixtureSource) -> dict[str, list[str] | ProblemSource]:
    return {
        part.name: [mixture.id_of(part, one) for one in part.ids] if isinstance(part, FiniteSource) else part
        for part in mixture.parts
    }


def _fields(problems: ProblemSource | None, by: str) -> dict[str, list[str] | ProblemSource]:
    if not isinstance(problems, FiniteSource):
        raise ConfigurationError(
            "This sampler chooses between kinds of problems, which requires a mixture of sources or a finite source. "
            "Set problems={\"mix\": [...]} or a file of problems, or use the sampler 'uniform'."
        )
    found: dict[Any, list[str]] = {}
    for problem in problems:
        value = field_of(problem, by)
        if value is None or isinstance(value, (list, dict)):
            raise ConfigurationError(
                f"The problem {problem.id!r} does not have the field {by!r}, from which its kind is read. "
                "Set the option `by` to the name of a field that holds a text or number in every problem."
            )
        found.setdefault(value, []).append(problem.id)
    numbers = all(isinstance(value, (int, float)) for value in found)
    return {str(value): found[value] for value in (sorted(found) if numbers else found)}


def _seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number, 4]).generate_state(1, np.uint64)[0])


def _names(names: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, names)) or "none"
