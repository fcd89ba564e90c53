"""``maxrl``: an advantage over the pass rate, which maximizes the likelihood of a success (arXiv 2602.02710).

Nothing but the advantage differs from ``grpo``. The larger the groups, the closer it comes to the likelihood.
"""

from ..base import TRAINERS, Recipe

MAXRL = Recipe(
    name="maxrl",
    summary="MaxRL: the reward less the group's mean, over the mean; rare successes weigh more",
    paper="arXiv 2602.02710",
    selector="all:reject_equal=true",
    advantage="maxrl",
    loss=("ppo_clip:low=0.2,high=0.28",),
)

TRAINERS.register("maxrl", MAXRL)
