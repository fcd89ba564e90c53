"""``deepsearch``: finds the episodes of a group by a search in a tree of chunks (DeepSearch, arXiv 2509.25454).

Each problem has 8 episodes; ratios are clipped at 0.2 and 0.28, and there is no KL term. The paper trains on problems
that the policy solves in at most one of four episodes: choose them with an evaluation, or with ``--set
sampler=difficulty_pool``. The paper's overlong penalty (buffer 4,096) is omitted: the values in the tree depend only on
whether answers are right, not on other parts of the reward.
"""

from ..base import TRAINERS, Recipe

DEEPSEARCH = Recipe(
    name="deepsearch",
    summary="DeepSearch: episodes found by a search in a tree of chunks; the nodes' values are the advantages",
    paper="arXiv 2509.25454",
    rollout="deepsearch",
    advantage="tree_value",
    loss=("ppo_clip:low=0.2,high=0.28",),
    defaults={"rollout": {"group_size": 8}, "optim": {"learning_rate": 1e-6}},
)

TRAINERS.register("deepsearch", DEEPSEARCH)
