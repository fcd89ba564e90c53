"""``cross_policy``: draws each turn from the newest weights or from older ones: AgentRL (arXiv 2510.04206).

Each turn is drawn, with ``probability``, from weights that are updated every ``every`` steps, else from the newest. So
episodes reach states that the policy alone would not reach. ``Turn.version`` is the version of the weights, and
``Turn.stale`` the result of the draw. The paper trains on the turns of both, with the log-probabilities with which they
were drawn, as the recipe ``agentrl`` does (``ppo_clip:anchor=sampled``); ``stale="mask"`` removes turns of older
weights from the loss. The default values of ``probability`` and ``every`` are this package's.

The older weights need their own engine: ``engine="transformers"`` keeps a second copy of the weights in each process,
and ``engine="vllm-server"`` uses further servers, at ``base_urls``. With other engines a run is refused.
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
    """Draws each turn from the newest weights or from older ones: AgentRL (arXiv 2510.04206).

    Choose it if the policy explores too little in environments of many turns.

    Args:
        probability: Probability that a turn is drawn from older weights.
        every: Steps after which the older weights are replaced by the newest. Checkpoints hold only the newest: a
            resumed run is exactly reproducible if ``run.save_every`` is a multiple.
        stale: ``"train"`` on turns of older weights, or ``"mask"`` them.
        base_urls: Addresses of the servers that hold the older weights, with ``engine="vllm-server"``.
    """

    probability: float = option(0.25, least=0, most=1)
    every: int = option(4, least=1)
    stale: Literal["train", "mask"] = "train"
    base_urls: list[str] = field(default_factory=list)

    @property
    def manner(self) -> Manner:
        """See ``Rollout``."""
        return Manner(stale=self.probability)

    @property
    def older_weights(self) -> OlderWeights:
        """See ``Rollout``."""
        return OlderWeights(self.every, tuple(self.base_urls))

    def rows(self, episode: Episode, advantage: float | NDArray[np.float64]) -> list[Row]:
        """See ``Rollout``; an episode with no unmasked token has no row."""
        row = Row.of(episode, advantage)
        if self.stale == "mask":
            row.mask = list(row.mask)
            for turn in episode.steps:
                if turn.stale:
                    row.mask[turn.start : turn.stop] = [0] * turn.tokens
        return [row] if row.policy_tokens else []


ROLLOUTS.register("cross_policy", CrossPolicy)
