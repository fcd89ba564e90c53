"""``echo``: cross-entropy of what a tool answered, so that the policy learns what its calls bring about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import ENVIRONMENT, LOSSES, Figures, Need
from .tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Echo(CheckedOptions):
    """-coef log pi on the tokens that a tool wrote: a world model beside the policy gradient (ECHO, arXiv 2605.24517).

    Every rollout teaches it, wrong ones too, and it costs no pass of its own. Its mean is that of the aggregation, over
    the environment's tokens: with ``token_mean`` it is the mean cross-entropy of what was shown, as in prime-rl. The
    tokens that the chat template puts around an answer are among them.

    Args:
        coef: Its weight in the loss; prime-rl's default (``roles.tool.alpha``).
        tools: Learn answers to the policy's calls alone; else whatever the environment shows after its turns.
    """

    coef: float = option(0.1, least=0)
    tools: bool = True

    needs: ClassVar[frozenset[Need]] = frozenset({ENVIRONMENT})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """See ``Term``."""
        return (-self.coef * tokens.logp).masked_fill(~self._learnt(tokens), 0.0)

    def figures(self, tokens: Tokens) -> Figures:
        """The mean cross-entropy of the tokens that it learns, in nats."""
        learnt = self._learnt(tokens)
        return {"echo": ((-tokens.logp.detach()).masked_fill(~learnt, 0.0).sum(), learnt.sum())}

    def _learnt(self, tokens: Tokens) -> Tensor:
        return tokens.environment if tokens.answered is None or not self.tools else tokens.answered > 0


LOSSES.register("echo", Echo)
