"""``rl_plus``: seven sampled answers and one external solution in each group (RL-PLUS, arXiv 2508.00222).

The external tokens are weighted by multiple importance sampling; tokens that are improbable under the policy get the
largest weights. The baseline is the mean of the policy's own episodes, and advantages are not divided by a deviation.
As in the released script, no ratio is clipped, the loss is divided by a constant, the entropy bonus is 0.001, and a
rollout has two optimizer steps. Solutions come from ``parts.rollout.file=TRACES`` or from ``Problem.meta``; if a
problem has none, all episodes of the group are sampled.
"""

from ..base import TRAINERS, Recipe

RL_PLUS = Recipe(
    name="rl_plus",
    summary="RL-PLUS: an external solution in each group, weighted by multiple importance sampling",
    paper="arXiv 2508.00222",
    source="YihongDong/RL-PLUS@eb4aa4d, exp_scripts/train_RL-PLUS.sh and rl_plus/verl/verl/recipe/rlplus_core_alg.py",
    checked="2026-11-24",
    rollout="external",
    advantage="policy_baseline",
    loss=("rl_plus:low=none,high=none", "entropy:coef=0.001"),
    aggregation="const_len",
    defaults={"rollout": {"group_size": 8}, "optim": {"minibatches": 2}},
)

TRAINERS.register("rl_plus", RL_PLUS)
