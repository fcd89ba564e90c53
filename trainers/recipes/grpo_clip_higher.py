"""``grpo_clip_higher``: GRPO (arXiv 2402.03300) with today's usual changes: clip-higher, token-level mean, no KL term.

The recipe trains on every episode that was played. Clipping (ratios from 0.8 to 1.28), the mean over tokens and the
optimizer are as in ``grpo_roc``, so that the two recipes differ only in the selection; clip-higher and the mean
over tokens are DAPO's (arXiv 2503.14476, sections 3.1 and 3.3). Groups with equal rewards are excluded from the loss,
as in ``grpo_roc``; ``selector="all:reject_equal=false"`` keeps their tokens in the mean. The original form is ``grpo``.
"""

from ..base import TRAINERS, Recipe

GRPO_CLIP_HIGHER = Recipe(
    name="grpo_clip_higher",
    summary="GRPO with clip-higher, the mean over tokens and no KL term: play G episodes and keep all",
    paper="arXiv 2402.03300",
    source="microsoft/rStar@ecbfb94, examples/run_qwen3-14b_rstar2_agent_weave.sh without its down-sampling",
    checked="2026-11-24",
    selector="all:reject_equal=true",
)

TRAINERS.register("grpo_clip_higher", GRPO_CLIP_HIGHER)
