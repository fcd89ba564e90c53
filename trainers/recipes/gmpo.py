"""``gmpo``: the geometric mean of the tokens' ratios (GMPO, arXiv 2507.20673).

Log-ratios are clipped token by token at 0.4 on one side each, and averaged over the answer. Every answer weighs the
same, no KL term. The groups of a rollout are divided into four optimizer steps: with one, all ratios are 1.
"""

from ..base import TRAINERS, Recipe

GMPO = Recipe(
    name="gmpo",
    summary="GMPO: the geometric mean of ratios that are clipped token by token",
    paper="arXiv 2507.20673",
    loss=("gmpo",),
    aggregation="seq_mean",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("gmpo", GMPO)
