"""``kl_cov``: a KL penalty on the tokens that lower the entropy most (KL-Cov, arXiv 2505.22617).

The penalty applies to the 0.02 % of the tokens with the largest covariance of log-probability and advantage, and keeps
them close to their old probabilities; nothing is clipped. The loss is a mean over tokens. Each step needs one more
forward pass. The groups of a rollout are divided into four optimizer steps; in the first of them the penalty is 0.
"""

from ..base import TRAINERS, Recipe

KL_COV = Recipe(
    name="kl_cov",
    summary="KL-Cov: a KL penalty on the tokens that lower the entropy most",
    paper="arXiv 2505.22617",
    loss=("ppo_clip:low=none,high=none", "kl_cov"),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("kl_cov", KL_COV)
