"""``rae``: the reward minus a running mean of the rewards of the episode's role: RAE of SPIRAL (arXiv 2506.24119).

A = r - b, where b is an exponential mean, over this step and earlier steps, of the rewards of episodes with this
episode's role (``Episode.task``). A group may have a single episode. The means are saved in checkpoints. Use it for
self-play and mixtures of games, where the mean reward of a group is not informative and the mean reward of a role
drifts slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.saved_attributes import SavedAttributes

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, sums_by_task


@dataclass
class Rae(CheckedOptions, SavedAttributes):
    r"""The reward minus a running mean of the rewards of the episode's task: SPIRAL (arXiv 2506.24119).

    The advantage is $r - b$ with the running mean $b$, which starts at 0. If a step has $n$ episodes of the task with
    the mean reward $m$, the new running mean is $\text{decay}^n b + (1 - \text{decay}^n) m$. An update after each
    episode would give the same result, averaged over all orders of the episodes.

    Args:
        decay: Weight of the previous mean when one episode is added.
        update: Update the mean with a step's rewards ``"first"``, before its advantages are computed, as in the paper;
            or ``"last"``, as in the released code and in prime-rl, where the baseline of the first step is 0.
    """

    least: ClassVar[int] = 1
    of_batch: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("_means",)
    decay: float = option(0.95, least=0, below=1)
    update: Literal["first", "last"] = "first"
    _means: dict[str, float] = field(init=False, repr=False, default_factory=dict)

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        before = dict(self._means)
        episodes = [episode for group in groups for episode in group]
        counts = sums_by_task(ranks, [(episode.task, 1.0) for episode in episodes])
        for task, total in sums_by_task(ranks, [(episode.task, episode.reward) for episode in episodes]).items():
            kept = self.decay ** counts[task]
            self._means[task] = kept * before.get(task, 0.0) + (1 - kept) * total / counts[task]
        used = self._means if self.update == "first" else before
        return [[episode.reward - used.get(episode.task, 0.0) for episode in group] for group in groups]


ADVANTAGES.register("rae", Rae)
