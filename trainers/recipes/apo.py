"""``apo``: treats right and wrong answers asymmetrically (APO, arXiv 2506.21655).

For right answers to hard problems, the KL term is weaker (``apo_dads``). Wrong answers that are longer than the right
ones of their group get a larger negative advantage (``apo_stcr``). Ratios are clipped at 0.2 on both sides. The weight
of the KL term is 1e-3; ``--set loss.apo_dads.coef=0.04`` sets GRPO's weight.
"""

from ..base import TRAINERS, Recipe

APO = Recipe(
    name="apo",
    summary="APO: a weaker KL term for right answers to hard problems, a larger penalty for long wrong answers",
    paper="arXiv 2506.21655",
    selector="all:reject_equal=true",
    advantage="apo_stcr",
    loss=("ppo_clip:low=0.2,high=0.2", "apo_dads"),
)

TRAINERS.register("apo", APO)
