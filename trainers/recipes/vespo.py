"""``vespo``: importance weights of whole answers, reshaped instead of clipped (VESPO, arXiv 2602.10693).

The weight is a function of the product of an answer's ratios that is 1 at 1 and fades on both sides, with the released
constants. Token-level mean, no KL term. The groups of a rollout are divided into four optimizer steps.
"""

from ..base import TRAINERS, Recipe

VESPO = Recipe(
    name="vespo",
    summary="VESPO: importance weights of whole answers, reshaped smoothly instead of clipped",
    paper="arXiv 2602.10693",
    loss=("vespo",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("vespo", VESPO)
