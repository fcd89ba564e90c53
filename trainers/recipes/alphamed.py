"""``alphamed``: the letter of a multiple-choice question is reward enough (AlphaMed, arXiv 2505.17952).

GRPO on 1 for the gold letter and 0 for any other, without distilled traces. For problems whose gold answer is a letter.
"""

from ..base import TRAINERS, Recipe

ALPHAMED = Recipe(
    name="alphamed",
    summary="AlphaMed: GRPO on the letter of multiple-choice questions",
    paper="arXiv 2505.17952",
    reward=("letter_choice",),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("alphamed", ALPHAMED)
