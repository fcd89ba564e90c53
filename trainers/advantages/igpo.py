"""``igpo``: rewards each turn with the increase of the gold answer's probability."""

# This module is longer than most parts because it implements two baselines.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option

from .base import ADVANTAGES, AdvantageNeed, FloatArray, GroupAdvantage, centred, deviation, measured
from .tokens import on_turns


@dataclass(frozen=True)
class Igpo(GroupAdvantage):
    r"""Sum of the information gains of a turn and all later turns (IGPO, arXiv 2510.14967).

    Let $p_t$ be the probability of the gold answer after turn $t$, as the geometric mean over its tokens. Turn $t$
    earns $r_t = p_t - p_{t - 1}$, and the last turn earns the episode's reward. Every token of turn $t$ has the
    advantage $A_t = \frac{G_t - b_t}{\text{std} + \text{eps}}$ with $G_t = \sum_{k \ge t} \gamma^{k - t} r_k$, so a
    turn is also credited with the turns after a tool's output. (In the authors' code, the sum stops at masked tokens.)
    The divisor std is the deviation of all $G_t$ of the group, with $n - 1$ degrees of freedom. The estimator requires
    problems with a gold answer, and one forward pass per turn. Use it for search and other tools whose results make the
    gold answer more probable.

    With ``baseline="turn"``, $b_t$ is the mean $G_t$ of the other episodes of the group that have a turn $t$, and 0 if
    there are none. This $b_t$ does not depend on the turn's own action, so the gradient is unbiased up to the division
    by std. With ``baseline="group"``, as in the paper, each $r_k$ is normalized by the mean and std of all $r_k$ of the
    group, and then summed. This baseline subtracts the mean once for every remaining turn. This biases the gradient if
    the policy influences the number of turns: if every turn earns the same reward, the gradient is 0, although longer
    episodes earn more.

    Args:
        lead: Text between the history and the gold answer, as the policy would write it.
        gamma: Discount of later turns.
        weight: Weight of the turns' gains relative to the rewards.
        baseline: ``"turn"`` compares a turn with the same turn of the other episodes; ``"group"``, with the mean of
            the group.
        normalize: Divide by the deviation.
        eps: Added to the deviation.
    """

    needs: ClassVar[frozenset[AdvantageNeed]] = frozenset({"answer"})
    lead: str = "<answer>\\boxed{"
    gamma: float = option(1.0, least=0, most=1)
    weight: float = option(1.0, least=0)
    baseline: Literal["turn", "group"] = "turn"
    normalize: bool = True
    eps: float = option(1e-6, least=0)

    def estimate(self, group: Sequence[Episode]) -> Sequence[float | FloatArray]:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        earned = [self._turns(episode) for episode in group]
        compared = [self._to_the_end(own) for own in earned] if self.baseline == "turn" else earned
        spread = self._spread(compared)
        if not spread:
            values = [own * 0.0 for own in earned]
        elif self.baseline == "turn":
            values = [own / spread for own in _beyond_others(compared)]
        else:
            mean = np.concatenate(earned).mean()
            values = [self._to_the_end((own - mean) / spread) for own in earned]
        return [on_turns(own, episode) for episode, own in zip(group, values, strict=True)]

    def _spread(self, values: Sequence[FloatArray]) -> float:
        """Return the divisor of the advantages; 0 if the values do not differ."""
        together = np.concatenate([*values, np.zeros(0)])
        if not centred(together).any():
            return 0.0
        return deviation(together) + self.eps if self.normalize else 1.0

    def _turns(self, episode: Episode) -> FloatArray:
        """Return the reward of each turn, (turns,): the weighted gain in the gold answer's probability.

        The reward of the last turn is the episode's reward.
        """
        gains = np.diff(measured(episode, "answer")) * self.weight
        return np.append(gains, episode.reward) if episode.steps else np.zeros(0)

    def _to_the_end(self, values: FloatArray) -> FloatArray:
        sums = np.zeros(len(values))
        total = 0.0
        for turn in reversed(range(len(values))):
            total = values[turn] + self.gamma * total
            sums[turn] = total
        return sums


def _beyond_others(returns: Sequence[FloatArray]) -> list[FloatArray]:
    """Subtract from each return the mean return of the other episodes at the same turn, or 0 if none has that turn."""
    turns = max(map(len, returns))
    count, total = np.zeros(turns), np.zeros(turns)
    for own in returns:
        count[: len(own)] += 1
        total[: len(own)] += own
    return [own - (total[: len(own)] - own) / np.maximum(count[: len(own)] - 1, 1) for own in returns]


ADVANTAGES.register("igpo", Igpo)
