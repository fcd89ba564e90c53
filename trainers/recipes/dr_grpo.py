"""``dr_grpo``: GRPO without its two biases (Dr. GRPO, arXiv 2503.20783, section 3.2).

The advantage is not divided by the group's standard deviation, which favours problems that are nearly always or never
solved, and the loss is divided by a constant (the budget of an episode) instead of each answer's length, which favours
long wrong answers. Clipping 0.2 on both sides, no KL term.
"""

from ..base import TRAINERS, Recipe

DR_GRPO = Recipe(
    name="dr_grpo",
    summary="Dr. GRPO: no division by the group's deviation, none by an answer's length",
    paper="arXiv 2503.20783",
    advantage="group_mean",
    loss=("ppo_clip:low=0.2,high=0.2",),
    aggregation="const_len",
)

TRAINERS.register("dr_grpo", DR_GRPO)
