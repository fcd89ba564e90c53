"""``gmpo``: uses the geometric mean of the tokens' ratios (GMPO, arXiv 2507.20673).

Log-ratios are clipped per token at 0.4, on the side given by the sign of the advantage, and averaged over the answer.
Every answer has the same weight; there is no KL term. The groups of a rollout are divided into four optimizer steps; in
a single step all ratios would be 1.
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
