"""``mae``: a policy poses and solves problems, and judges problems and answers (Multi-Agent Evolve, arXiv 2510.23595).

Task-relative REINFORCE++: the advantage is the reward minus the role's mean reward in the batch, divided by the role's
deviation. A group of eight is one round: a proposer, its judge, three solvers and their judges. With
``parts.rollout.judge=environment``, the environment, instead of a judge, grades the solvers; its ``reset`` must accept
problems. A rollout has two optimizer steps, as in the authors' script.
"""

from ..base import TRAINERS, Recipe

MAE = Recipe(
    name="mae",
    summary="Multi-Agent Evolve: one policy proposes, solves and judges; each role is compared only with itself",
    paper="arXiv 2510.23595",
    source="ulab-uiuc/Multi-agent-evolve@d71c00b, scripts/selfplay/mae.sh",
    checked="2026-11-24",
    rollout="mae",
    advantage="task_norm:of=(reinforce:baseline=none)",
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={"rollout": {"group_size": 8}, "optim": {"minibatches": 2}},
)

TRAINERS.register("mae", MAE)
