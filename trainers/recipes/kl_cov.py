"""``kl_cov``: tokens that drive the entropy down are held (KL-Cov, arXiv 2505.22617).

The two in ten thousand tokens with the largest covariance of log-probability and advantage are pulled back to what they
were; nothing is clipped. Token-level mean. One forward pass more a step. The groups of a rollout are divided into four
optimizer steps: in the first, nothing has moved yet.
"""

from ..base import TRAINERS, Recipe

KL_COV = Recipe(
    name="kl_cov",
    summary="KL-Cov: the tokens that drive the entropy down are held where they were",
    paper="arXiv 2505.22617",
    loss=("ppo_clip:low=none,high=none", "kl_cov"),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("kl_cov", KL_COV)
