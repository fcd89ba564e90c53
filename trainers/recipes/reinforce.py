"""``reinforce``: the plain policy gradient with the mean reward of the batch as baseline (Williams 1992).

It needs no groups, since the baseline covers all episodes of the step. ``reinforce_pp`` also divides by the deviation.
"""

from ..base import TRAINERS, Recipe

REINFORCE = Recipe(
    name="reinforce",
    summary="The plain policy gradient, with the mean reward of the batch as baseline",
    paper="Williams 1992",
    advantage="reinforce",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("reinforce", REINFORCE)
