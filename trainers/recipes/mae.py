"""``mae``: a policy poses problems, solves them, and judges both (Multi-Agent Evolve, arXiv 2510.23595).

Task-relative REINFORCE++: rewards less the mean of their role in the batch, over its deviation. A group of eight is one
round: a proposer, its judge, three solvers and their judges. ``parts.rollout.judge=environment`` lets an environment
that can be given problems grade the solvers in place of the judges.
"""

from ..base import TRAINERS, Recipe

MAE = Recipe(
    name="mae",
    summary="Multi-Agent Evolve: proposer, solver and judge of one policy, each compared with its own role",
    paper="arXiv 2510.23595",
    rollout="mae",
    advantage="task_norm:of=(reinforce:baseline=none)",
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={"rollout": {"group_size": 8}},
)

TRAINERS.register("mae", MAE)
