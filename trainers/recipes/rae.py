"""``rae``: the plain policy gradient, with a running mean for each role (RAE of SPIRAL, arXiv 2506.24119).

A role is the task that an environment names on ``reset``. It needs no groups; an episode is one action, so its tokens
are summed.
"""

from ..base import TRAINERS, Recipe

RAE = Recipe(
    name="rae",
    summary="RAE of SPIRAL: the plain policy gradient, with the running mean reward of each role as baseline",
    paper="arXiv 2506.24119",
    advantage="rae",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("rae", RAE)
