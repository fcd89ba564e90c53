"""``gvpo``: least squares between rewards and what the policy's change implies (GVPO, arXiv 2504.19599).

Both less the group's mean, with beta 0.1 as in the authors' code. The mean is over answers. One forward pass more a
step. The groups of a rollout are divided into four optimizer steps: with one, it is a policy gradient.
"""

from ..base import TRAINERS, Recipe

GVPO = Recipe(
    name="gvpo",
    summary="GVPO: fit what the policy's change implies to the rewards of a group",
    paper="arXiv 2504.19599",
    advantage="group_mean",
    loss=("gvpo",),
    aggregation="const_len:length=1",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("gvpo", GVPO)
