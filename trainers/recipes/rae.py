"""``rae``: the plain policy gradient with a running mean reward per role (RAE of SPIRAL, arXiv 2506.24119).

The role of an episode is the task that the environment names on ``reset``. No groups are needed. An episode counts as
one action, so the log-probabilities of its tokens are summed. The authors' code takes two clipped updates per rollout;
here, there is one update, without a ratio.
"""

from ..base import TRAINERS, Recipe

RAE = Recipe(
    name="rae",
    summary="RAE of SPIRAL: the plain policy gradient, with the running mean reward of each role as baseline",
    paper="arXiv 2506.24119",
    source="spiral-rl/spiral@a02d0ed, train_spiral.py and run.sh",
    checked="2026-11-24",
    advantage="rae",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("rae", RAE)
