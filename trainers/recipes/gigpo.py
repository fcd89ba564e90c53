"""``gigpo``: compares episodes within their group, and turns that start in the same state (GiGPO, arXiv 2505.10978).

Use this recipe for environments with many turns in which states recur. The groups have 8 episodes, and the KL term has
the weight 0.01, as in the paper. Groups with equal rewards are kept, since their turns may differ.
"""

from ..base import TRAINERS, Recipe

GIGPO = Recipe(
    name="gigpo",
    summary="GiGPO: advantages of episodes within a group, and of turns among all turns from the same state",
    paper="arXiv 2505.10978",
    source="examples/gigpo_trainer, gigpo/core_gigpo.py and verl/trainer/ppo/ray_trainer.py of verl-agent, in "
    "its copy xlan156/verl-agent@8ca3a46",
    checked="2026-11-24",
    advantage="gigpo",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=0.01"),
    defaults={"rollout": {"group_size": 8}},
)

TRAINERS.register("gigpo", GIGPO)
