"""``shaped_offpolicy``: trains on refined and sampled answers together, with a shaped probability (Critique-GRPO)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, LossInput
from .ppo_clip import PpoClip
from .tokens import LARGEST_LOG, Tensor, Tokens


@dataclass(frozen=True)
class ShapedOffpolicy(CheckedOptions):
    r"""$-\text{ratio} \, A$ on sampled rows; $-f(\pi) A$ on off-policy rows, $f(\pi) = \frac{\pi}{\pi + \gamma}$.

    The loss of Critique-GRPO (arXiv 2506.03106, section 3.3). Sampled rows have no clip by default. $f$ does not use
    the probability with which an off-policy row was sampled, because the row omits the critique that was in the prompt.
    The gradient, $\frac{\gamma \pi}{(\pi + \gamma)^2}$ times the gradient of $\log \pi$, is largest at $\pi = \gamma$
    and decreases on both sides (for $\gamma = .1$, the factor is .25 at $\pi = .1$, and .083 at $\pi = .01$ and
    $\pi = 1$), so improbable tokens count more than in a plain ratio. Off-policy rows are those with the column
    ``off_policy``, such as refined answers. The shaping is LUFFY's (arXiv 2504.14945).

    Args:
        gamma: Probability at which $f$ is one half.
        low: See ``ppo_clip``; applies to sampled rows. The authors use no bound.
        high: See ``ppo_clip``.
    """

    gamma: float = option(0.1, above=0)
    low: float | None = option(None, least=0, most=1)
    high: float | None = option(None, least=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        now = tokens.logp.clamp(-LARGEST_LOG, 0.0).exp()
        shaped = -now / (now + self.gamma) * tokens.advantage
        sampled = PpoClip(low=self.low, high=self.high)(tokens)
        return shaped.where(tokens.column("off_policy") > 0.5, sampled)


LOSSES.register("shaped_offpolicy", ShapedOffpolicy)
