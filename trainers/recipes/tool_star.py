"""``tool_star``: a reward for format, answer and the use of several tools, in this order (Tool-Star, arXiv 2505.16410).

GRPO with a hierarchical reward: -1 for a broken format, else the score of the answer, plus 0.1 if the episode used two
different tools. If answers are texts: ``--set reward.tool_hierarchy.score=f1``. Not covered: the paper's DPO phase on
its own samples.
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
