"""``skill_gap``: draws kinds of problems by their failure rates, updated in cycles (EnvGen, arXiv 2403.12014).

In the paper, a language model writes environments for the skills that an agent lacks, in four cycles of training. Here
the environments exist as kinds of problems, and the cycles change their shares.
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


class SkillGap(SavedAttributes):
    """Draws kinds of problems in proportion to their failure rates, updated in cycles (EnvGen, arXiv 2403.12014).

    The share of a kind in a cycle is proportional to one minus its success rate in the last cycle in which it was
    played; the success rate of a kind that was never played counts as 0. Equal success rates give equal shares. Use
    this sampler if all kinds must be learned.

    Args:
        seed: Seed of all draws.
        problems: The environment's source of problems.
        by: Field of the problems that names their kind, if the source is not a mixture.
        order: The kinds to use; all by default.
        every: Rollouts per cycle.
        cycles: Number of cycles; the shares of the last one stay until the end of the run. The paper uses 4.
        floor: Minimum weight of a kind, so that a kind that always succeeds is not forgotten.

    Raises:
        ConfigurationError: There are fewer than two kinds of problems.
    """

    saved = ("_kinds", "_drawn", "_steps", "_success", "_seen")

    @checked
    def __init__(
        self,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        by: str = "source",
        order: tuple[str, ...] = (),
        every: Count = 25,
        cycles: Count = 4,
        floor: Annotated[float, Rule(least=0, most=1)] = 0.0,
    ) -> None:
        self._kinds = Kinds(problems, by, order, seed=seed)
        self._every, self._cycles, self._floor = every, cycles, floor
        self._drawn = self._steps = 0
        self._success = dict.fromkeys(self._kinds.names, 0.0)
        self._seen = {name: [0, 0] for name in self._kinds.names}

    @property
    def shares(self) -> dict[str, float]:
        """Return the probability of each kind in this cycle."""
        weights = {name: max(1 - success, self._floor) for name, success in self._success.items()}
        total = sum(weights.values())
        return {name: weight / total if total else 1 / len(weights) for name, weight in weights.items()}

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        found = self._kinds.draw_by(self.shares, n, before=self._drawn)
        self._drawn += n
        return found

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Count successes; at the end of a cycle they determine the shares of the next one."""
        for outcome in outcomes:
            if outcome.start.kind in self._seen:
                seen = self._seen[outcome.start.kind]
                seen[0], seen[1] = seen[0] + outcome.successes, seen[1] + outcome.episodes
        self._steps += 1
        if self._steps % self._every == 0 and self._steps < self._every * self._cycles:
            for name, (right, played) in self._seen.items():
                if played:
                    self._success[name], self._seen[name] = right / played, [0, 0]

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        return {f"share/{name}": share for name, share in self.shares.items()}


SAMPLERS.register("skill_gap", SkillGap)
