"""``cross_policy``: each turn is drawn from the newest weights or from older ones: AgentRL (arXiv 2510.04206).

At every turn the model that acts is drawn: with ``probability`` one whose weights move every ``every`` steps, else
the newest. So episodes come to states that the policy alone would not reach. ``Turn.version`` tells the weights, and
``Turn.stale`` the draw. The paper trains on the turns of both, with the log-probabilities with which they were drawn,
as the recipe ``agentrl`` does (``ppo_clip:anchor=sampled``); ``stale="mask"`` leaves the older one's out of the loss.
The defaults of the two numbers are ours.

The older weights need an engine of their own: ``engine="transformers"`` gets a second copy of them in each process, and
``engine="vllm-server"`` further servers, whose addresses are ``base_urls``. Elsewhere a run is refused. Longer than
most parts, since it says which engine holds the older weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode
from rstar2_env.core.manner import Manner
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.row import Row

from ..samplers.base import Start
from .base import ROLLOUTS, OlderWeights, Play, at_once


@dataclass(frozen=True)
class CrossPolicy(CheckedOptions):
    """Draws each turn from the newest weights or from older ones: AgentRL (arXiv 2510.04206).

    Choose it where the policy explores too little in environments of many turns.

    Args:
        probability: Of a turn to be drawn from older weights.
        every: Steps after which the older weights become the newest. Checkpoints hold the newest alone: a run is
            exactly reproducible across a resume where ``run.save_every`` is a multiple.
        stale: What becomes of their turns: ``"train"`` on them, or ``"mask"`` them.
        base_urls: Addresses of the servers that hold them, with ``engine="vllm-server"``.
    """

    probability: float = option(0.25, least=0, most=1)
    every: int = option(4, least=1)
    stale: Literal["train", "mask"] = "train"
    base_urls: list[str] = field(default_factory=list)

    @property
    def manner(self) -> Manner:
        """See ``PlaysIn``."""
        return Manner(stale=self.probability)

    @property
    def older_weights(self) -> OlderWeights:
        """See ``HoldsOlder``."""
        return OlderWeights(self.every, tuple(self.base_urls))

    async def __call__(self, starts: Sequence[Start], size: int, play: Play) -> list[list[Episode]]:
        """See ``Rollout``."""
        playing = (
            play.episode(start, group=group, member=member, manner=self.manner)
            for group, start in enumerate(starts)
            for member in range(size)
        )
        episodes = await at_once(playing)
        return [episodes[at : at + size] for at in range(0, len(episodes), size)]

    def rows(self, episode: Episode, advantage: float | NDArray[np.float64]) -> list[Row]:
        """See ``MakesRows``; an episode that is all masked has none."""
        row = Row.of(episode, advantage)
        if self.stale == "mask":
            row.mask = list(row.mask)
            for turn in episode.steps:
                if turn.stale:
                    row.mask[turn.start : turn.stop] = [0] * turn.tokens
        return [row] if row.policy_tokens else []


ROLLOUTS.register("cross_policy", CrossPolicy)
