"""``tool_star``: a reward for format, answer and the use of several tools, in this order (Tool-Star, arXiv 2505.16410).

GRPO with a hierarchical reward: -1 for a broken format, else the score of the answer, plus 0.1 if this score is
positive and the episode used two different tools. If answers are texts: ``--set reward.tool_hierarchy.score=f1``.
Ratios are clipped to the range from 0.8 to 1.2, the weight of the KL term is 0 as in the authors' script, and a rollout
has eight optimizer steps. Not covered: the paper's DPO phase on samples of the policy.
"""

from ..base import TRAINERS, Recipe

TOOL_STAR = Recipe(
    name="tool_star",
    summary="Tool-Star: a hierarchical reward of format, answer and the use of several tools",
    paper="arXiv 2505.16410",
    source="dongguanting/Tool-Star@d12222c, Tool_Star_RL/scripts/train/run_tool_star.sh and train.sh",
    checked="2026-11-24",
    reward=("tool_hierarchy",),
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={"optim": {"minibatches": 8, "learning_rate": 1e-6}},
)

TRAINERS.register("tool_star", TOOL_STAR)
