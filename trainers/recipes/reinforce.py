"""``reinforce``: the plain policy gradient with the mean reward of the batch as baseline (Williams 1992).

The recipe needs no groups, since the baseline covers all episodes of the step. The recipe ``reinforce_pp`` also divides
the advantage by the standard deviation.
"""

from ..base import TRAINERS, Recipe

REINFORCE = Recipe(
    name="reinforce",
    summary="The plain policy gradient, with the mean reward of the batch as baseline",
    paper="Williams 1992",
    source="R. J. Williams, Simple statistical gradient-following algorithms, Machine Learning 8 (1992), theorem 1; "
    "it has no code",
    checked="2026-11-24",
    advantage="reinforce",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("reinforce", REINFORCE)
