"""``maxrl``: advantages divided by the pass rate, to maximize the likelihood of success (MaxRL, arXiv 2602.02710).

Only the advantage differs from ``grpo``. The larger the groups are, the closer the objective is to the likelihood.
"""

from ..base import TRAINERS, Recipe

MAXRL = Recipe(
    name="maxrl",
    summary="MaxRL: the reward minus the group's mean, divided by the mean; rare successes have more weight",
    paper="arXiv 2602.02710",
    selector="all:reject_equal=true",
    advantage="maxrl",
    loss=("ppo_clip:low=0.2,high=0.28",),
)

TRAINERS.register("maxrl", MAXRL)
