"""``grpo``: group-relative policy optimization (arXiv 2402.03300) on every episode that was played.

Clipping, token-level mean and optimizer are as in ``grpo_roc``, so that the two recipes differ only in the selection.
Groups with equal rewards are excluded from the loss, as in ``grpo_roc``; ``selector="all:reject_equal=false"`` keeps
their tokens in the mean. The paper averages over each answer first, and adds a KL term with the weight 0.04:
``--set aggregation=seq_mean --set loss.kl.coef=0.04``.
"""

from ..base import TRAINERS, Recipe

GRPO = Recipe(
    name="grpo",
    summary="GRPO on every episode: play G, keep G",
    paper="arXiv 2402.03300",
    selector="all:reject_equal=true",
)

TRAINERS.register("grpo", GRPO)
