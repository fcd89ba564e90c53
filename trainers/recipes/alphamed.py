"""``alphamed``: GRPO on multiple-choice questions; only the answer's letter is rewarded (AlphaMed, arXiv 2505.17952).

The reward is 1 for the gold letter and 0 for any other answer; no distilled traces are needed. The gold answer of each
problem must be a letter.
"""

from ..base import TRAINERS, Recipe

ALPHAMED = Recipe(
    name="alphamed",
    summary="AlphaMed: GRPO on the letter of multiple-choice questions",
    paper="arXiv 2505.17952",
    checked="Not checked: the details of training. On 2026-11-28 they were neither in arXiv 2505.17952 nor in the "
    "repository cheliu-computation/AlphaMed. On 2026-11-29, the authors' cheliu-computation/Med-R1-Alpha held no code. "
    "The abstract and independent summaries state GRPO and a binary reward for the letter, as in this recipe.",
    reward=("letter_choice",),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("alphamed", ALPHAMED)
