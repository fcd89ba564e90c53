"""``clip_cov``: excludes some of the tokens that lower the entropy most (Clip-Cov, arXiv 2505.22617).

Tokens whose covariance of log-probability and advantage is between 1 and 5 are candidates. A random choice of
candidates, as many as 0.02 % of all tokens, is excluded from the loss. Ratios are clipped only above 2, as in the
authors' script. The loss is a mean over tokens, without a KL term. Each step needs one more forward pass. Groups whose
answers are all right or all wrong are replaced, in at most nine further rounds, and the groups of a rollout are divided
into eight optimizer steps.
"""

from ..base import TRAINERS, Recipe

CLIP_COV = Recipe(
    name="clip_cov",
    summary="Clip-Cov: some of the tokens that lower the entropy most are excluded from the loss",
    paper="arXiv 2505.22617",
    source="PRIME-RL/Entropy-Mechanism-of-RL@8850579, recipe/dapo/7b_clip_cov.sh; verl-project/verl@1dda039b9, "
    "verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    selector="all:reject_equal=true,equal=correct",
    loss=("clip_cov:low=1,high=1",),
    defaults={"rollout": {"refill": 9}, "optim": {"minibatches": 8}},
)

TRAINERS.register("clip_cov", CLIP_COV)
