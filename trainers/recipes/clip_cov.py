"""``clip_cov``: excludes some of the tokens that lower the entropy most (Clip-Cov, arXiv 2505.22617).

Tokens are drawn from those whose covariance of log-probability and advantage is between 1 and 5, and excluded from the
loss; their number is 0.02 % of all tokens. The loss is PPO clipped at 0.2, as a mean over tokens, without a KL term.
Each step needs one more forward pass. The groups of a rollout are divided into four optimizer steps.
"""

from ..base import TRAINERS, Recipe

CLIP_COV = Recipe(
    name="clip_cov",
    summary="Clip-Cov: some of the tokens that lower the entropy most are excluded from the loss",
    paper="arXiv 2505.22617",
    loss=("clip_cov",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("clip_cov", CLIP_COV)
