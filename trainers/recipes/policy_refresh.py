"""``policy_refresh``: from easy to hard in stages, each held to the policy that it begins with (arXiv 2507.17512).

Can One Domain Help Others?: GRPO with a KL term over the levels of a domain, easiest first; at the end of each stage
the reference model becomes the policy and the optimizer begins afresh. The levels are the values of the field ``level``
(``--set sampler.by=people``), or the parts of a mixture. Stages have 100 steps here, and the KL term weighs 1e-3; the
sampler and the hook each take ``steps``, which must be the same.
"""

from ..base import TRAINERS, Recipe

POLICY_REFRESH = Recipe(
    name="policy_refresh",
    summary="Policy refresh: from easy to hard in stages, each held to the policy that it begins with",
    paper="arXiv 2507.17512",
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3"),
    sampler="stages:by=level,steps=100",
    hook=("policy_refresh:steps=100",),
)

TRAINERS.register("policy_refresh", POLICY_REFRESH)
