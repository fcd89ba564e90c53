"""``rubric_scaffold``: shows criteria of the rubric in the prompts of some episodes, fewer as the run proceeds."""

# This module is longer than most parts because it contains the schedule of the help and reads rubrics.

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.options.rules import FromRun

from ..samplers.base import Start
from .base import ROLLOUTS, Play, Rollout, at_once


@dataclass(frozen=True)
class RubricScaffold(CheckedOptions, Rollout):
    r"""Shows criteria of the rubric in prompts, fewer as the run proceeds (RuscaRL, arXiv 2508.16949).

    The prompt of episode $i$ of $G$ (from 0) shows $\operatorname{round}(K \lambda_i)$ of the $K$ criteria of the
    problem's rubric, chosen at random. Here
    $\lambda_i = \frac{G - 1 - i}{G - 1} \operatorname{sigmoid}(-\alpha (t - t_0))$, and
    $t = \frac{\text{rollout}}{\text{steps} - 1}$. At the start of the run, the first episode sees all criteria and the
    last sees none; soon after $t_0$ no episode sees any. In training, the prompt of every episode is only the question.
    The criteria are in ``problem.meta["rubric"]``, as for the reward ``rubric``: tables with ``criterion`` and
    ``points``.

    Args:
        alpha: Steepness of the decay.
        t0: Share of the run after which prompts show half as many criteria as at the beginning.
        steps: Number of rollouts of the run; ``None`` reads the number from the run.
    """

    alpha: float = option(125.0, least=0)
    t0: float = option(0.2, least=0, most=1)
    steps: Annotated[int | None, FromRun("rollouts")] = option(None, least=1)

    def shares(self, size: int, step: int) -> list[float]:
        """Return the share of the criteria that the prompt of each episode shows, in [0, 1].

        Args:
            size: Number of episodes of the group.
            step: Number of rollouts so far.
        """
        if self.steps is None:
            raise ConfigurationError(
                "The rollout part 'rubric_scaffold' needs to know how many rollouts the run has: set its option "
                "`steps` to that number."
            )
        late = self.alpha * (step / max(self.steps - 1, 1) - self.t0)
        left = 0.0 if late > 700 else 1 / (1 + math.exp(late))
        return [left * (size - 1 - member) / max(size - 1, 1) for member in range(size)]

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; see ``Rollout``."""
        shares, items = self.shares(size, play.step), _rubric(start, play)

        def prompt(member: int) -> str | None:
            # The same draw on any number of processes, unlike play.rng.
            rng = np.random.default_rng([start.seed, play.step, member])
            shown = sorted(rng.choice(len(items), round(len(items) * shares[member]), replace=False).tolist())
            points = "".join(f"\n- {items[at]}" for at in shown)
            return (
                f"{{question}}\n\nThe answer will be judged by these points, among others:{points}" if shown else None
            )

        texts = enumerate(map(prompt, range(size)))
        return await at_once(play.episode(start, group=number, member=at, shown=shown) for at, shown in texts)


def _rubric(start: Start, play: Play) -> list[str]:
    problem = play.problem(start.problem_id)
    items = () if problem is None else problem.meta.get("rubric", ())
    if not items:
        raise ConfigurationError(
            "The rollout part 'rubric_scaffold' needs problems with a rubric (meta['rubric']); the problem "
            f"{start.problem_id!r} does not have one."
        )
    return [f"{item['criterion']} ({item['points']:+g})" for item in items]


ROLLOUTS.register("rubric_scaffold", RubricScaffold)
