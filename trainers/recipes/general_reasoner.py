"""``general_reasoner``: a model compares answers with the gold answers (General-Reasoner, arXiv 2505.14652).

The reward is the verdict of a judge (``rollout.judge``), minus 0.05 for each token by which the answer is longer or
shorter than the gold answer, for up to 10 tokens; it is -0.5 without an answer. The authors trained their own verifier,
a model with 1.5B parameters.
"""

from ..base import TRAINERS, Recipe

GENERAL_REASONER = Recipe(
    name="general_reasoner",
    summary="General-Reasoner: GRPO on the verdict of a model, for answers of any domain",
    paper="arXiv 2505.14652",
    reward=("model_verifier",),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("general_reasoner", GENERAL_REASONER)
