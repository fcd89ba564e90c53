"""``gigpo``: episodes against their group, turns against those from the same state (GiGPO, arXiv 2505.10978).

For environments of many turns in which states recur. Groups of 8 and a KL term of 0.01, as in the paper. Groups of
equal rewards stay, since their turns may differ.
"""

from ..base import TRAINERS, Recipe

GIGPO = Recipe(
    name="gigpo",
    summary="GiGPO: advantages of episodes in their group, and of turns among those from the same state",
    paper="arXiv 2505.10978",
    advantage="gigpo",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=0.01"),
    defaults={"rollout": {"group_size": 8}},
)

TRAINERS.register("gigpo", GIGPO)
