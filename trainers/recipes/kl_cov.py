"""``kl_cov``: a KL penalty on the tokens that lower the entropy most (KL-Cov, arXiv 2505.22617).

The penalty applies to the 0.02 % of the tokens with the largest covariance of log-probability and advantage, and keeps
them close to their old probabilities; nothing is clipped. The authors use 0.2 % for 7B parameters and 0.02 % for 32B
(``loss.kl_cov.share``). The loss is a mean over tokens. Each step needs one more forward pass. Groups whose answers are
all right or all wrong are replaced, in at most nine further rounds, and the groups of a rollout are divided into eight
optimizer steps; in the first of them the penalty is 0.
"""

from ..base import TRAINERS, Recipe

KL_COV = Recipe(
    name="kl_cov",
    summary="KL-Cov: a KL penalty on the tokens that lower the entropy most",
    paper="arXiv 2505.22617",
    source="PRIME-RL/Entropy-Mechanism-of-RL@8850579, recipe/dapo/7b_kl_cov.sh; verl-project/verl-recipe@48ea0a7, "
    "entropy/7b_kl_cov.sh; verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=none,high=none", "kl_cov"),
    defaults={"rollout": {"refill": 9}, "optim": {"minibatches": 8}},
)

TRAINERS.register("kl_cov", KL_COV)
