"""``acereason``: one domain after the other, with growing budgets (AceReason-Nemotron, arXiv 2505.16400).

GRPO without a KL term, on policy, with the mean over tokens and a symmetric clip, which has no effect because each
rollout has one optimizer step. The kinds of problems are trained on in the order of ``sampler.order`` (``math+code``),
each for ``sampler.steps`` rollouts. The token budget grows in four stages of equal length from ``max_episode_tokens``
(8K in the paper) to four times that number.
"""

from ..base import TRAINERS, Recipe

ACEREASON = Recipe(
    name="acereason",
    summary="AceReason: on-policy training on one domain after the other, with growing token budgets",
    paper="arXiv 2505.16400",
    source="the abstract of arXiv 2505.16400v2, and the objective as a review at www.themoonlight.io quotes it; "
    "no released training code was found on 2026-11-30",
    checked="2026-11-24",
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
    sampler="stages",
    hook=("length_stages",),
)

TRAINERS.register("acereason", ACEREASON)
