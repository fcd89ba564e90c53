"""``echo``: cross-entropy of tool results, so that the policy learns the effects of its calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import ENVIRONMENT, LOSSES, Figures, LossInput
from .tokens import Tensor, Tokens


@dataclass(frozen=True)
class Echo(CheckedOptions):
    r"""$-\text{coef} \log \pi$ on tool tokens: a world model, added to the policy gradient (ECHO, arXiv 2605.24517).

    The term learns from every rollout, including wrong ones, without an extra pass. The aggregation averages the term
    over the environment's tokens: with ``token_mean``, the result is the mean cross-entropy of the observations, as in
    prime-rl. The tokens that the chat template adds around a result are included.

    Args:
        coef: Weight in the loss; the default is prime-rl's (``roles.tool.alpha``).
        tools: Train only on results of the policy's calls; otherwise, on all observations after its turns.
    """

    coef: float = option(0.1, least=0)
    tools: bool = True

    needs: ClassVar[frozenset[LossInput]] = frozenset({ENVIRONMENT})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return (-self.coef * tokens.logp).masked_fill(~self._learnt(tokens), 0.0)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the mean cross-entropy of the tokens that the term trains on, in nats."""
        return {"echo": tokens.sum_and_count(-tokens.logp.detach(), self._learnt(tokens))}

    def _learnt(self, tokens: Tokens) -> Tensor:
        return tokens.environment if tokens.answered is None or not self.tools else tokens.answered > 0


LOSSES.register("echo", Echo)
