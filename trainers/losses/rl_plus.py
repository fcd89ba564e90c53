"""``rl_plus``: loss for groups with external solutions, by multiple importance sampling (RL-PLUS, arXiv 2508.00222)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .ppo_clip import PpoClip
from .tokens import LARGEST_LOG, Tensor, Tokens


@dataclass(frozen=True)
class RlPlus(CheckedOptions):
    r"""``ppo_clip`` on own rows; $-r (1 - \operatorname{sg} \pi)^\gamma A$ on external rows, without a clip (RL-PLUS).

    $r = \frac{2 \pi}{\pi_\text{external} + \pi_\text{old}}$, with $\pi_\text{external} = \frac{\pi_\text{old} + 1}{2}$,
    because the probability of the solution under its author's distribution is unknown (arXiv 2508.00222, section 3.1; 1
    is the released code's value for the uniform distribution in the paper). For $\pi = \pi_\text{old}$, $r$ is .3077 at
    $\pi = .1$, .8 at $\pi = .5$ and 1 at $\pi = 1$; for $\pi = .5$ and $\pi_\text{old} = .1$, $r$ is 1.5385; $r$ is at
    most 4. The paper's exploration factor is $(1 - \pi)^\gamma$: tokens that are improbable for the policy count most.
    Own rows are those that the policy sampled; external rows are those with the column ``off_policy``, such as the rows
    of the rollout ``external``. Use it with the advantage ``policy_baseline``.

    Args:
        gamma: Exponent of the exploration factor; the released code uses 0.5, and 0 disables it.
        low: See ``ppo_clip``; applies to the policy's own rows.
        high: See ``ppo_clip``; ``None`` for ``low`` and ``high`` is the code's ``loss_remove_clip``.
    """

    gamma: float = option(0.5, least=0)
    low: float | None = option(0.2, least=0, most=1)
    high: float | None = option(0.2, least=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        # Probabilities; the values off the mask are arbitrary and must not overflow.
        now, old = (logp.clamp(-LARGEST_LOG, 0.0).exp() for logp in (tokens.logp, tokens.old))
        ratio = 2 * now / ((old + 1) / 2 + old)
        external = -ratio * (1 - now.detach()) ** self.gamma * tokens.advantage
        return external.where(tokens.column("off_policy") > 0.5, self._surrogate(tokens))

    def figures(self, tokens: Tokens) -> Figures:
        """Return the metrics of ``ppo_clip``, and the share of external tokens."""
        share = tokens.sum_and_count(tokens.column("off_policy") > 0.5)
        return {**self._surrogate.figures(tokens), "external": share}

    @property
    def _surrogate(self) -> PpoClip:
        return PpoClip(low=self.low, high=self.high)


LOSSES.register("rl_plus", RlPlus)
