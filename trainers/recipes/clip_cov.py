"""``clip_cov``: tokens that drive the entropy down are left out (Clip-Cov, arXiv 2505.22617).

Two in ten thousand tokens are drawn of those whose covariance of log-probability and advantage is between 1 and 5, and
do not train; the rest is PPO, clipped at 0.2. Token-level mean, no KL term. One forward pass more a step. The groups of
a rollout are divided into four optimizer steps.
"""

from ..base import TRAINERS, Recipe

CLIP_COV = Recipe(
    name="clip_cov",
    summary="Clip-Cov: a few of the tokens that drive the entropy down do not train",
    paper="arXiv 2505.22617",
    loss=("clip_cov",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("clip_cov", CLIP_COV)
