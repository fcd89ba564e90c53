"""``rl_plus``: seven sampled answers and one external solution in each group (RL-PLUS, arXiv 2508.00222).

External tokens count by multiple importance sampling, most where the policy would hardly write them, and without a
clip; the baseline is the mean of the policy's own episodes, and nothing is divided by a deviation. Solutions come from
``parts.rollout.file=TRACES`` or from ``Problem.meta``; where a problem has none, all episodes are sampled.
"""

from ..base import TRAINERS, Recipe

RL_PLUS = Recipe(
    name="rl_plus",
    summary="RL-PLUS: an external solution in each group, weighed by multiple importance sampling",
    paper="arXiv 2508.00222",
    rollout="external",
    advantage="policy_baseline",
    loss=("rl_plus",),
    defaults={"rollout": {"group_size": 8}},
)

TRAINERS.register("rl_plus", RL_PLUS)
