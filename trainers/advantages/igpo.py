"""``igpo``: each turn earns the increase of the gold answer's probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option

from .base import ADVANTAGES, AdvantageNeed, FloatArray, GroupAdvantage, centred, deviation, measured
from .tokens import on_turns


@dataclass(frozen=True)
class Igpo(GroupAdvantage):
    """Information gain of each turn, normalized over the group and summed to the end (IGPO, arXiv 2510.14967).

    Let p_t be the probability of the gold answer after turn t, as the geometric mean over its tokens. Turn t earns
    p_t - p_{t-1}, and the last turn earns the episode's reward. These are normalized over all turns of all episodes of
    the group: A_t = (r_t - mean) / (std + eps), with n - 1 degrees of freedom; the advantage of every token of turn t
    is the sum over k >= t of gamma^(k-t) A_k. The sum is over turns, so a turn before a tool's output is credited with
    the turns after it. The mean is over the whole group. (In the authors' code, the sum stops at masked tokens, and the
    mean is over the turns with the same number.) It requires problems with a gold answer, and one forward pass per
    turn. Use it for search and other tools whose results make the gold answer more probable.

    Args:
        lead: Text between the history and the gold answer, as the policy would write it.
        gamma: Discount of later turns.
        weight: Weight of the turns' gains relative to the rewards.
        eps: Added to the deviation.
    """

    needs: ClassVar[frozenset[AdvantageNeed]] = frozenset({"answer"})
    lead: str = "<answer>\\boxed{"
    gamma: float = option(1.0, least=0, most=1)
    weight: float = option(1.0, least=0)
    eps: float = option(1e-6, least=0)

    def estimate(self, group: Sequence[Episode]) -> Sequence[float | FloatArray]:
        """See ``GroupAdvantage``."""
        earned = [self._turns(episode) for episode in group]
        together = np.concatenate([*earned, np.zeros(0)])
        spread = deviation(together) + self.eps
        normed = centred(together) / spread if spread else np.zeros_like(together)
        ends = np.cumsum([len(own) for own in earned])
        parts = np.split(normed, ends[:-1]) if len(earned) else []
        return [on_turns(self._to_the_end(own), episode) for episode, own in zip(group, parts, strict=True)]

    def _turns(self, episode: Episode) -> FloatArray:
        """Return the reward of each turn, shape (turns,): its weighted gain; for the last turn the episode's reward."""
        gains = np.diff(measured(episode, "answer")) * self.weight
        return np.append(gains, episode.reward) if episode.steps else np.zeros(0)

    def _to_the_end(self, values: FloatArray) -> FloatArray:
        sums = np.zeros(len(values))
        total = 0.0
        for turn in reversed(range(len(values))):
            total = values[turn] + self.gamma * total
            sums[turn] = total
        return sums


ADVANTAGES.register("igpo", Igpo)
