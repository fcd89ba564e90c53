r"""``critique_grpo``: groups of seven sampled answers and a refined one (Critique-GRPO, arXiv 2506.03106).

The advantage is not divided by the group's deviation. The loss is divided by a constant, not by the answer's length.
Tokens of the refined answer have the weight $\frac{p}{p + 0.1}$, where $p$ is the token's probability, instead of a
ratio; sampled tokens have their unclipped ratio. The entropy bonus is 0.001; a rollout has two optimizer steps. In the
paper a larger model writes the critiques: ``--set rollout.judge=model:url=...,model=NAME --set
parts.rollout=critique_refine:critic=judge``. By default the policy writes the critiques; with
``critique_refine:critique=simple_gt`` the critique is a verdict and the gold answer.
"""

from ..base import TRAINERS, Recipe

CRITIQUE_GRPO = Recipe(
    name="critique_grpo",
    summary="Critique-GRPO: one answer of each group is refined after a critique, and trained on without the critique",
    paper="arXiv 2506.03106",
    source="zhangxy-2019/critique-GRPO@e8f03a2, "
    "verl/examples/grpo_trainer/run_open_r1_math4k-qwen3-8b-base-critique_simple_gt_online.sh",
    checked="2026-11-24",
    rollout="critique_refine",
    advantage="group_mean",
    loss=("shaped_offpolicy", "entropy:coef=0.001"),
    aggregation="const_len",
    defaults={"rollout": {"group_size": 8}, "optim": {"minibatches": 2}},
)

TRAINERS.register("critique_grpo", CRITIQUE_GRPO)
