"""``rae``: the reward minus a running mean of the rewards of its role: RAE of SPIRAL (arXiv 2506.24119).

A = r - b, where b is an exponential mean of the rewards of the same role in earlier steps and in this step; the role is
``Episode.task``. It needs no group, and its means are saved in checkpoints. Use it for self-play and mixtures of games,
where the mean reward of a group is not informative and that of a role drifts slowly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages


@dataclass
class Rae(CheckedOptions):
    """The reward minus a running mean of the rewards of its role, one per task: SPIRAL (arXiv 2506.24119).

    A step updates the mean as its episodes would one after the other, on average over their orders: n episodes move it
    by 1 - decay^n of the distance to their mean reward. It starts at 0.

    Args:
        decay: Weight of the previous mean relative to one more episode.
        update: Whether a step's rewards enter the mean ``"first"``, as in the paper, or ``"last"``, after its
            advantages were computed, as in the released code and in prime-rl; then the first step has no baseline.
    """

    least: ClassVar[int] = 1
    decay: float = option(0.95, least=0, below=1)
    update: Literal["first", "last"] = "first"
    _means: dict[str, float] = field(init=False, repr=False, default_factory=dict)

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """See ``Advantage``."""
        before = dict(self._means)
        for task, (total, count) in _by_task(groups, ranks).items():
            kept = self.decay**count
            self._means[task] = kept * before.get(task, 0.0) + (1 - kept) * total / count
        used = self._means if self.update == "first" else before
        return [[episode.reward - used.get(episode.task, 0.0) for episode in group] for group in groups]

    def state_dict(self) -> dict[str, Any]:
        """Return the mean of each role."""
        return {"means": dict(self._means)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self._means = {str(task): float(mean) for task, mean in state["means"].items()}


def _by_task(groups: Sequence[Sequence[Episode]], ranks: Ranks) -> dict[str, tuple[float, int]]:
    """Sum and number of the rewards of each task, over all processes."""
    own: dict[str, tuple[float, int]] = {}
    for group in groups:
        for episode in group:
            total, count = own.get(episode.task, (0.0, 0))
            own[episode.task] = (total + episode.reward, count + 1)
    found: dict[str, tuple[float, int]] = {}
    for each in ranks.gather(own):
        for task, (more, number) in each.items():
            total, count = found.get(task, (0.0, 0))
            found[task] = (total + more, count + number)
    return found


ADVANTAGES.register("rae", Rae)
