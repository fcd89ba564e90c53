"""``policy_refresh``: stages from easy to hard, each with its initial policy as reference model (arXiv 2507.17512).

From "Can One Domain Help Others?": GRPO with a KL term on the levels of a domain, easiest first. At the end of each
stage, the policy becomes the reference model and the optimizer is reset. The levels are the values of the field
``level`` (or of another one, with ``--set sampler.by=FIELD``) or the parts of a mixture. A stage has 100 steps, and the
weight of the KL term is 1e-3. The sampler's option ``steps`` counts rollouts, and the hook's option ``steps`` counts
optimizer steps: if a rollout has several optimizer steps, multiply the hook's value by their number. The authors'
script has eight optimizer steps per rollout (256 problems in minibatches of 32).
"""

from ..base import TRAINERS, Recipe

POLICY_REFRESH = Recipe(
    name="policy_refresh",
    summary="Policy refresh: stages from easy to hard, each with its initial policy as reference model",
    paper="arXiv 2507.17512",
    source="Leey21/A-Data-Centric-Study@4d6713e, run.sh and examples/grpo_trainer/math_and_code.sh",
    checked="2026-11-24",
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3"),
    sampler="stages:by=level,steps=100",
    hook=("policy_refresh:steps=100",),
)

TRAINERS.register("policy_refresh", POLICY_REFRESH)
