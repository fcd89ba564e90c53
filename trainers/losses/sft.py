"""``sft``: cross-entropy of answers that an expert wrote, or that the policy wrote with additional help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .tokens import Tensor, Tokens


@dataclass(frozen=True)
class SftLoss(CheckedOptions):
    r"""$-\text{coef} \log \pi$ on rows with 1 in the column ``off_policy``: supervision, added to the policy gradient.

    This is the term of Cog-Rethinker (arXiv 2510.15979). Use it with the rollout ``decompose``, whose rows have the
    advantage 0; on rows with a nonzero advantage, the loss of this term is added to the loss of the other terms. The
    aggregation averages the term over all rows.

    Args:
        coef: Weight in the loss; the paper's $\lambda$, whose value is not published.
    """

    coef: float = option(0.1, least=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset()
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return (-self.coef * tokens.logp).masked_fill(~self._learnt(tokens), 0.0)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the mean cross-entropy of the tokens that the term trains on, in nats."""
        return {"sft": tokens.sum_and_count(-tokens.logp.detach(), self._learnt(tokens))}

    def _learnt(self, tokens: Tokens) -> Tensor:
        return (tokens.column("off_policy") > 0) & tokens.mask


LOSSES.register("sft", SftLoss)
