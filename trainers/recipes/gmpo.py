"""``gmpo``: uses the geometric mean of the tokens' ratios (GMPO, arXiv 2507.20673).

The log-ratio of each token is clipped, to at most 0.4 if the advantage is positive and to at least -0.4 otherwise; the
clipped log-ratios are averaged over the answer. Every answer has the same weight; there is no KL term. The groups of a
rollout are divided into eight optimizer steps, as in the authors' script; in a single step all ratios would be 1.
"""

from ..base import TRAINERS, Recipe

GMPO = Recipe(
    name="gmpo",
    summary="GMPO: the geometric mean of ratios that are clipped token by token",
    paper="arXiv 2507.20673",
    source="callsys/GMPO@205b2bf, scripts/qwen2.5-math-7b-gmpo.sh; verl-project/verl@1dda039b9, "
    "verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    loss=("gmpo",),
    aggregation="seq_mean",
    defaults={"optim": {"minibatches": 8}},
)

TRAINERS.register("gmpo", GMPO)
