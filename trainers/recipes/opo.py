"""``opo``: exactly on policy, with the baseline of least variance (OPO, arXiv 2505.23585).

One update a rollout, no clip, no KL term, no entropy bonus; an answer is one action, so its tokens are summed.
"""

from ..base import TRAINERS, Recipe

OPO = Recipe(
    name="opo",
    summary="OPO: the plain policy gradient, with the group's mean weighted by length as baseline",
    paper="arXiv 2505.23585",
    advantage="opo",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("opo", OPO)
