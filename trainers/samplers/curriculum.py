"""``curriculum``: moves to the next level of difficulty when the pass rate is high (SATURN, arXiv 2505.16368).

The paper measures the pass rate on held-out instances of the level. Here, it is measured on the latest training groups
of the level, so no further episodes are needed.
"""

# This module is longer than most parts because it reports figures and has a state for checkpoints.

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .kinds import Kinds


class Curriculum(SavedAttributes):
    """Draws from one level of difficulty until its pass rate exceeds a threshold (SATURN, arXiv 2505.16368).

    Then the next, harder level starts. The first level is the easiest, and the sampler never returns to an easier
    level. Use this sampler for instances of known difficulty: ``problems={"mix": [{"spec": "saturn:clauses=5"},
    {"spec": "saturn:clauses=6"}]}``, or a file with a field ``level``.

    Args:
        seed: Seed of all draws.
        problems: The environment's source of problems.
        by: Field of the problems that names their level, if the source is not a mixture.
        order: The levels, easiest first; by default the parts of the mixture, or the values of the field, ascending.
        above: Pass rate above which the next level starts. The paper uses about 0.5 for a model with 1.5B parameters,
            and 0.75 for a model with 7B.
        window: Number of latest groups of a level from which its pass rate is computed; a level lasts at least that
            many groups.

    Raises:
        ConfigurationError: There are fewer than two levels.
    """

    saved = ("_kinds", "_level", "_latest")

    @checked
    def __init__(
        self,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        by: str = "level",
        order: tuple[str, ...] = (),
        above: Annotated[float, Rule(least=0, most=1)] = 0.5,
        window: Count = 64,
    ) -> None:
        self._kinds = Kinds(problems, by, order, seed=seed)
        self._above, self._window = above, window
        self._level = 0
        self._latest: list[list[int]] = []

    @property
    def level(self) -> str:
        """The current level of difficulty."""
        return self._kinds.names[self._level]

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        return [self._kinds.draw(self.level) for _ in range(n)]

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Start the next level if the pass rate of the current level is high enough."""
        own = [one for one in outcomes if one.start.kind == self.level and one.episodes]
        self._latest = [*self._latest, *([one.successes, one.episodes] for one in own)][-self._window :]
        if len(self._latest) < self._window or self._level == len(self._kinds.names) - 1:
            return
        right, played = map(sum, zip(*self._latest, strict=True))
        if right > self._above * played:
            self._level, self._latest = self._level + 1, []

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        shares = {f"share/{name}": float(name == self.level) for name in self._kinds.names}
        return {"level": self._level + 1.0, **shares}


SAMPLERS.register("curriculum", Curriculum)
