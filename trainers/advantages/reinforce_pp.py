"""``reinforce_pp``: returns of tokens, normalized over the batch: REINFORCE++ (arXiv 2501.03262).

A_t = (G_t - mean) / (std + eps) over all policy tokens of the batch, where G_t is the sum of the rewards of the token's
turn and of later turns, discounted by gamma per policy token in between. Tokens of the environment do not end or
discount a return, so the reward of the last turn also counts for the first turn of the episode. With
``baseline=group``, the mean reward of the group is subtracted first (REINFORCE++-baseline). The paper's KL penalty is a
term of the loss here. Use the plain form for one episode per problem, and the baseline for groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, FloatArray, centred, rewards
from .tokens import normalized, turn_rewards


@dataclass(frozen=True)
class ReinforcePp(CheckedOptions):
    r"""Returns of tokens, normalized over the batch: REINFORCE++ (arXiv 2501.03262).

    The advantage is $\frac{G_t - \text{mean}}{\text{std} + \text{eps}}$ over all policy tokens of the batch, where
    $G_t$ is the sum of the rewards of the token's turn and of later turns, discounted by $\gamma$ per policy token in
    between.

    Args:
        baseline: ``"none"``, or the mean reward of the ``"group"``, subtracted first, as in REINFORCE++-baseline.
        gamma: Discount per policy token.
        eps: Added to the deviation.
    """

    of_batch: ClassVar[bool] = True
    baseline: Literal["none", "group"] = "none"
    gamma: float = option(1.0, above=0, most=1)
    eps: float = option(1e-4, least=0)

    @property
    def least(self) -> int:
        """Minimum number of episodes in a group: 2 with ``baseline=group``, otherwise 1."""
        return 2 if self.baseline == "group" else 1

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        values: Advantages = []
        for group in groups:
            raw = rewards(group)
            less = raw - centred(raw) if self.baseline == "group" else np.zeros(len(group))
            values.append([self._returns(episode, float(mean)) for episode, mean in zip(group, less, strict=True)])
        return normalized(groups, values, ranks, self.eps)

    def _returns(self, episode: Episode, less: float) -> float | FloatArray:
        earned = turn_rewards(episode)
        if not episode.steps or (self.gamma == 1 and not earned[:-1].any()):
            return episode.reward - less
        earned[-1] -= less
        found, after = np.zeros(len(episode.completion_ids)), 0.0
        for turn, reward in zip(reversed(episode.steps), reversed(earned), strict=True):
            # The reward belongs to the last token of the turn; the next token of the policy is one step later.
            last = reward + (self.gamma * after if turn.tokens else after)
            found[turn.start : turn.stop] = last * self.gamma ** np.arange(turn.tokens - 1, -1, -1)
            after = float(found[turn.start]) if turn.tokens else last
        return found


ADVANTAGES.register("reinforce_pp", ReinforcePp)
