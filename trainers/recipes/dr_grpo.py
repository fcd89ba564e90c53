"""``dr_grpo``: GRPO without its two biases (Dr. GRPO, arXiv 2503.20783, section 3.2).

GRPO divides the advantage by the group's standard deviation, which favours problems that are nearly always or never
solved, and the loss by the length of each answer, which favours long wrong answers. Here, the advantage is not divided
by the deviation; the loss is divided by a constant, the token budget of an episode. Ratios are clipped to the range
from 0.8 to 1.2; there is no KL term.
"""

from ..base import TRAINERS, Recipe

DR_GRPO = Recipe(
    name="dr_grpo",
    summary="Dr. GRPO: no division by the group's deviation or by the length of an answer",
    paper="arXiv 2503.20783",
    source="sail-sg/understand-r1-zero@dfca49d, train_zero_math.py and examples/qwen2.5-math-7b.sh",
    checked="2026-11-24",
    advantage="group_mean",
    loss=("ppo_clip:low=0.2,high=0.2",),
    aggregation="const_len",
)

TRAINERS.register("dr_grpo", DR_GRPO)
