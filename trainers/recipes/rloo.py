"""``rloo``: REINFORCE with the mean of the group's other episodes as baseline (RLOO, arXiv 2402.14740, section 3).

An answer is one action, so the log-probabilities of its tokens are summed; here the sum is divided by a constant, which
only scales the step. The paper subtracts a KL term from the score of a reward model. Here, rewards
are verified and there is no KL term; ``--set loss.kl.coef=0.05`` adds a KL term to the loss.
"""

from ..base import TRAINERS, Recipe

RLOO = Recipe(
    name="rloo",
    summary="REINFORCE with a leave-one-out baseline: the mean of the group's other episodes",
    paper="arXiv 2402.14740",
    source="arXiv 2402.14740, section 3; verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    advantage="rloo",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("rloo", RLOO)
