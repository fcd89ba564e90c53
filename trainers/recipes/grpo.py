"""``grpo``: group-relative policy optimisation (arXiv 2402.03300) on every episode that was played.

Clipping, token-level mean and optimizer are those of ``grpo_roc``, so that the two differ only in the selection. Groups
whose rewards are all equal are left out of the loss, as in ``grpo_roc``; ``selector="all:reject_equal=false"``
keeps their tokens in the mean. The paper takes the mean over each answer first, and adds a KL term with 0.04:
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
