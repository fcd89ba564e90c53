"""``rover``: regression of the policy towards values of the uniform policy (ROVER, arXiv 2509.24981)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Need
from .tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Rover(CheckedOptions):
    """(Q - y)^2, where a ratio to the old policy is the value Q: random policy valuation (ROVER, arXiv 2509.24981).

    Q_t = rho (log pi(a_t) - log pi_old(a_t)), and y_t = r + rho (V_{t+1} - V_old_{t+1}), without a gradient, where V is
    the mean over the vocabulary of the log-probabilities at the policy's next token, and nothing after its last. In a
    deterministic tree, as text is, the best action under the value of the *uniform* policy is an optimal one, and a
    softmax over these values keeps several solutions alive. r is the advantage, the same at every token: with
    ``group_mean`` as in the paper, with ``group_norm`` as its authors do on math. The first update on a rollout is a
    policy gradient, later ones are not. For those who want many different right answers.

    Args:
        rho: Weight of the log-probabilities against the reward; the temperature of the softmax.
    """

    rho: float = option(1.0, above=0)

    needs: ClassVar[frozenset[Need]] = frozenset({"old", "mean_logp"})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """See ``Term``."""
        if tokens.mean_logp is None or tokens.old_mean_logp is None:
            raise ConfigurationError("The loss term rover needs means of log-probabilities; there are none.")
        following = tokens.following(tokens.mean_logp - tokens.old_mean_logp)
        return (self.rho * tokens.log_ratio - (tokens.advantage + self.rho * following)).square()


LOSSES.register("rover", Rover)
