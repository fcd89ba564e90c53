"""``cross_policy``: draws each turn from the newest weights or from older ones: AgentRL (arXiv 2510.04206).

With probability ``probability``, a turn is sampled from older weights, which are replaced by the newest weights every
``every`` optimizer steps; otherwise it is sampled from the newest weights. Episodes therefore reach states that the
newest policy alone would not reach. ``Turn.version`` is the version of the weights; ``Turn.stale`` is true for a turn
of older weights. The paper trains on turns of old and new weights, with the log-probabilities of the weights that
sampled them, as the recipe ``agentrl`` does (``ppo_clip:anchor=sampled``); ``stale="mask"`` excludes turns of older
weights from the loss. The default values of ``probability`` and ``every`` are this package's choices.

The older weights need their own engine: ``engine="transformers"`` keeps a second copy of the weights in each process,
and ``engine="vllm-server"`` uses further servers, at ``base_urls``. A run with another engine is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode
from rstar2_env.core.manner import Manner
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.row import Row

from .base import ROLLOUTS, OlderWeights, Rollout


@dataclass(frozen=True)
class CrossPolicy(CheckedOptions, Rollout):
    """Sample each turn from the newest weights or from older weights: AgentRL (arXiv 2510.04206).

    Use this part if the policy explores too little in environments with many turns.

    Args:
        probability: Probability that a turn is sampled from the older weights.
        every: Optimizer steps after which the newest weights replace the older weights. Checkpoints hold only the
            newest weights, so a resumed run is exactly reproducible only if ``run.save_every`` is a multiple of this
            number.
        stale: ``"train"`` on turns of older weights, or ``"mask"`` them.
        base_urls: Addresses of the servers that hold the older weights, with ``engine="vllm-server"``.
    """

    probability: float = option(0.25, least=0, most=1)
    every: int = option(4, least=1)
    stale: Literal["train", "mask"] = "train"
    base_urls: list[str] = field(default_factory=list)

    @property
    def manner(self) -> Manner:
        """Playing options that the part's episodes need; see ``Rollout``."""
        return Manner(stale=self.probability)

    @property
    def older_weights(self) -> OlderWeights:
        """The older weights from which the part samples turns; see ``Rollout``."""
        return OlderWeights(self.every, tuple(self.base_urls))

    def rows(self, episode: Episode, advantage: float | NDArray[np.float64]) -> list[Row]:
        """Return the rows of an episode; none if all of its tokens are masked. See ``Rollout``."""
        row = Row.of(episode, advantage)
        if self.stale == "mask":
            row.mask = list(row.mask)
            for turn in episode.steps:
                if turn.stale:
                    row.mask[turn.start : turn.stop] = [0] * turn.tokens
        return [row] if row.policy_tokens else []


ROLLOUTS.register("cross_policy", CrossPolicy)
