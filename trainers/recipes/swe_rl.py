"""``swe_rl``: the similarity of patches as the reward, without running tests (SWE-RL, arXiv 2502.18449).

The algorithm is GRPO. The reward is the similarity of the policy's changed lines to the changed lines of the gold
patch, or -1 for a patch that cannot be parsed. The problems need ``meta["files"]``; see ``reward=diff_similarity``.
"""

from ..base import TRAINERS, Recipe

SWE_RL = Recipe(
    name="swe_rl",
    summary="SWE-RL: GRPO on the similarity of the policy's patch to the gold patch",
    paper="arXiv 2502.18449",
    source="facebookresearch/swe-rl@5aa10d6, src/swerl/core/reward.py; the authors released the reward only",
    checked="2026-11-24",
    reward=("diff_similarity",),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("swe_rl", SWE_RL)
