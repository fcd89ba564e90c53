"""``alphamed``: GRPO on multiple-choice questions; only the answer's letter is rewarded (AlphaMed, arXiv 2505.17952).

The reward is 1 for the gold letter and 0 for any other answer; no distilled traces are needed. The gold answer of each
problem must be a letter.
"""

from ..base import TRAINERS, Recipe

ALPHAMED = Recipe(
    name="alphamed",
    summary="AlphaMed: GRPO on the letter of multiple-choice questions",
    paper="arXiv 2505.17952",
    source="the abstract of arXiv 2505.17952, and the formula of GRPO. A test compares the binary reward for the "
    "letter, and a group's advantages, with values computed by hand; no released code was found on 2026-11-30 (version "
    "1 announces a release; surveys name only models and data), and the abstract states neither the clip nor the sizes",
    checked="2026-11-29",
    reward=("letter_choice",),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("alphamed", ALPHAMED)
