"""``deepsearch``: the episodes of a group are found by a search in a tree of chunks (DeepSearch, arXiv 2509.25454).

8 episodes a problem, clip-higher, no KL term. The paper trains on problems that the policy solves in a quarter of four
episodes at most: choose them by an evaluation, or with ``--set sampler=difficulty_pool``. Its overlong punishment
(buffer 4,096) is left out: the values of the tree are those of verdicts, which no part of the reward reaches.
"""

from ..base import TRAINERS, Recipe

DEEPSEARCH = Recipe(
    name="deepsearch",
    summary="DeepSearch: episodes found by a search in a tree of chunks, whose values are the advantages",
    paper="arXiv 2509.25454",
    rollout="deepsearch",
    advantage="tree_value",
    loss=("ppo_clip:low=0.2,high=0.28",),
    defaults={"rollout": {"group_size": 8}, "optim": {"learning_rate": 1e-6}},
)

TRAINERS.register("deepsearch", DEEPSEARCH)
