"""``pav``: rewards each turn for its progress under a prover, in addition to the outcome (PAV, arXiv 2410.08146).

The advantage is GRPO's advantage of the outcome plus, on the tokens of each turn, 0.5 times the turn's progress: the
increase of the probability that at least one of four episodes succeeds, if the policy continues from there. Each turn
except the last one costs four further episodes. The paper trains separate provers and uses REINFORCE; its effective
reward is the same sum.
"""

from ..base import TRAINERS, Recipe

PAV = Recipe(
    name="pav",
    summary="PAV: the outcome, plus the progress of each turn under a prover",
    paper="arXiv 2410.08146",
    checked="Not checked: the authors released no code, and only the abstract could be read.",
    reward=("return", "progress:weight=0.5"),
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("pav", PAV)
