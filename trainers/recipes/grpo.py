"""``grpo``: group-relative policy optimization in its original form (DeepSeekMath, arXiv 2402.03300, section 4.1).

The loss of an answer is the mean over its tokens, every answer has the same weight, ratios are clipped to the range
from 0.8 to 1.2, and a KL term with the weight 0.04 keeps the policy near the initial model. Groups with equal rewards
are kept, since the KL term acts on them. A rollout has one optimizer step, as in the paper (64 answers per problem,
1,024 answers per step); the paper does not state the clip. The form that most frameworks use today, without a KL term,
is ``grpo_clip_higher``.
"""

from ..base import TRAINERS, Recipe

GRPO = Recipe(
    name="grpo",
    summary="GRPO as published: the mean over each answer, a symmetric clip, a KL term",
    paper="arXiv 2402.03300",
    source="arXiv 2402.03300, equations 3 and 4, and section 4.2 for the KL weight and the single update; the authors "
    "released no training code, so also with verl-project/verl@1dda039b9, compute_grpo_outcome_advantage and "
    "kl_penalty_forward in verl/trainer/ppo/core_algos.py",
    checked="2026-11-30",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=0.04"),
    aggregation="seq_mean",
)

TRAINERS.register("grpo", GRPO)
