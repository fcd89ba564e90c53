"""``acereason``: one domain after the other, with growing budgets (AceReason-Nemotron, arXiv 2505.16400).

GRPO without a KL term, on policy, with the mean over tokens. The kinds of the problems come in their order
(``sampler.order=math+code``), for ``sampler.steps`` each; the budget grows from ``max_episode_tokens`` (8K in the
paper) to four times as much, in four stages of equal length.
"""

from ..base import TRAINERS, Recipe

ACEREASON = Recipe(
    name="acereason",
    summary="AceReason: one domain after the other, on policy, with growing token budgets",
    paper="arXiv 2505.16400",
    selector="all:reject_equal=true",
    sampler="stages",
    hook=("length_stages",),
)

TRAINERS.register("acereason", ACEREASON)
