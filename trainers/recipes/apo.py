"""``apo``: asymmetric treatment of right and wrong answers (APO, arXiv 2506.21655).

Right answers to hard problems are held less to the reference model (``apo_dads``), and wrong answers that are longer
than the right ones of their group are pushed away further (``apo_stcr``). Clipping 0.2 on both sides. The weight of the
KL term is 1e-3; ``--set loss.apo_dads.coef=0.04`` is GRPO's.
"""

from ..base import TRAINERS, Recipe

APO = Recipe(
    name="apo",
    summary="APO: less KL for right answers to hard problems, less of long wrong answers",
    paper="arXiv 2506.21655",
    selector="all:reject_equal=true",
    advantage="apo_stcr",
    loss=("ppo_clip:low=0.2,high=0.2", "apo_dads"),
)

TRAINERS.register("apo", APO)
