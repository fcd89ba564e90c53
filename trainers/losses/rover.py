"""``rover``: fits the policy to the action values of a uniformly random policy (ROVER, arXiv 2509.24981)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, LossInput
from .tokens import Tensor, Tokens


@dataclass(frozen=True)
class Rover(CheckedOptions):
    r"""$(Q - y)^2$, where the log-ratio to the old policy defines the value $Q$ (ROVER, arXiv 2509.24981).

    $Q_t = \rho (\log \pi(a_t) - \log \pi_\text{old}(a_t))$, and $y_t = r + \rho (V_{t + 1} - V_{\text{old}, t + 1})$,
    without a gradient. $V_{t + 1}$ is the mean log-probability of all tokens of the vocabulary at the position of the
    policy's next token, and 0 after the last one. In a deterministic tree, such as text, the best action under the
    value of the *uniform* policy is optimal, and a softmax over these values keeps several solutions probable. $r$ is
    the advantage, equal at every token: with ``group_mean`` as in the paper, with ``group_norm`` as in its authors'
    experiments on math. Only the first update on a rollout is a policy gradient. Use it to obtain many different
    correct answers.

    Args:
        rho: Weight of the log-probabilities relative to the reward; also the temperature of the softmax.
    """

    rho: float = option(1.0, above=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old", "mean_logp"})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        if tokens.mean_logp is None or tokens.old_mean_logp is None:
            raise ConfigurationError(
                "The loss term 'rover' needs the mean log-probability over the vocabulary at each token, but "
                "the trainer did not compute it: if your own term calls rover, list 'old' and 'mean_logp' in its "
                "`needs`."
            )
        following = tokens.following(tokens.mean_logp - tokens.old_mean_logp)
        return (self.rho * tokens.log_ratio - (tokens.advantage + self.rho * following)).square()


LOSSES.register("rover", Rover)
