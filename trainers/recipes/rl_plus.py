"""``rl_plus``: seven sampled answers and one external solution in each group (RL-PLUS, arXiv 2508.00222).

External tokens have a weight from multiple importance sampling, which is largest for tokens that are improbable under
the policy; they are not clipped. The baseline is the mean of the policy's own episodes, and advantages are not divided
by a deviation. Solutions come from ``parts.rollout.file=TRACES`` or from ``Problem.meta``; if a problem has none, all
episodes of the group are sampled.
"""

from ..base import TRAINERS, Recipe

RL_PLUS = Recipe(
    name="rl_plus",
    summary="RL-PLUS: an external solution in each group, weighted by multiple importance sampling",
    paper="arXiv 2508.00222",
    rollout="external",
    advantage="policy_baseline",
    loss=("rl_plus",),
    defaults={"rollout": {"group_size": 8}},
)

TRAINERS.register("rl_plus", RL_PLUS)
