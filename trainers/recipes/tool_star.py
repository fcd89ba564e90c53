"""``tool_star``: format first, then the answer, then several tools (Tool-Star, arXiv 2505.16410).

GRPO with a hierarchical reward: -1 for a broken format, else the score of the answer, and 0.1 more for one that used
two different tools. For answers that are texts: ``--set reward.tool_hierarchy.score=f1``. The paper goes on with DPO on
its own samples, which is not here.
"""

from ..base import TRAINERS, Recipe

TOOL_STAR = Recipe(
    name="tool_star",
    summary="Tool-Star: a hierarchical reward of format, answer and the use of several tools",
    paper="arXiv 2505.16410",
    reward=("tool_hierarchy",),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("tool_star", TOOL_STAR)
