"""``pav``: rewards each turn for its progress under a prover, in addition to the outcome (PAV, arXiv 2410.08146).

The advantage is the outcome minus the group's mean plus, on the tokens of each turn, three times the turn's progress:
the increase, during this turn, of the probability that at least one of four continuations by the policy succeeds. Each
turn except the last one costs four further episodes. In the paper, the best weight of the progress is 5 for a 2B model
and 3 for a 9B model (all weights from 0.5 to 6 are better than the outcome alone), and the best KL weight is 0.001. The
paper uses REINFORCE with a value function as baseline, and a model that predicts the progress under a fixed, weaker
prover. Here, the prover is the best of four episodes of the policy, a prover that the paper uses for search.
"""

from ..base import TRAINERS, Recipe

PAV = Recipe(
    name="pav",
    summary="PAV: the outcome, plus a reward for each turn that makes success more likely",
    paper="arXiv 2410.08146",
    source="arXiv 2410.08146, equations 2 to 5, section 5 and appendix E; no released code was found on 2026-11-30",
    checked="2026-11-28",
    reward=("return", "progress:weight=3"),
    advantage="group_mean",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=0.001"),
)

TRAINERS.register("pav", PAV)
