"""``pav``: each turn earns its progress under a prover, in addition to the outcome (PAV, arXiv 2410.08146).

GRPO's advantage of the outcome, and on the tokens of each turn 0.5 times what it adds to the chance that the best of
four episodes of the policy succeeds from there. Each turn but the last costs four further episodes. The paper trains
its provers and takes REINFORCE; its effective reward is this sum.
"""

from ..base import TRAINERS, Recipe

PAV = Recipe(
    name="pav",
    summary="PAV: the outcome, and for each turn its progress under a prover",
    paper="arXiv 2410.08146",
    reward=("return", "progress:weight=0.5"),
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("pav", PAV)
