"""``m2po``: a trust region over the whole batch, for old rollouts (M2PO, arXiv 2510.01161).

Tokens of the largest log-ratios are left out until the mean of their squares is below 0.04; nothing is clipped. Token
mean, no KL term. One forward pass more a step. The groups of a rollout are divided into four optimizer steps; the paper
trains on rollouts that are up to 256 steps old.
"""

from ..base import TRAINERS, Recipe

M2PO = Recipe(
    name="m2po",
    summary="M2PO: outliers are left out until the second moment of the log-ratios is small",
    paper="arXiv 2510.01161",
    loss=("m2po",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("m2po", M2PO)
