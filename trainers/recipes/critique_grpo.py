"""``critique_grpo``: seven sampled answers and one that a critique refined (Critique-GRPO, arXiv 2506.03106).

The advantage is not divided by a deviation, and the loss by a constant instead of an answer's length. Refined tokens
count by f(pi) = pi / (pi + 0.1) in place of a ratio, sampled ones by their ratio, unclipped; a bonus of 0.001 for
entropy. The paper's critiques come from a larger model: ``--set rollout.judge=model:url=...,model=NAME --set
parts.rollout=critique_refine:critic=judge``. Without one they come from the policy;
``critique_refine:critique=simple_gt`` says what is right instead.
"""

from ..base import TRAINERS, Recipe

CRITIQUE_GRPO = Recipe(
    name="critique_grpo",
    summary="Critique-GRPO: one answer of each group is refined with a critique, and learnt without it",
    paper="arXiv 2506.03106",
    rollout="critique_refine",
    advantage="group_mean",
    loss=("shaped_offpolicy", "entropy:coef=0.001"),
    aggregation="const_len",
    defaults={"rollout": {"group_size": 8}},
)

TRAINERS.register("critique_grpo", CRITIQUE_GRPO)
