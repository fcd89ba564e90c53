"""``igpo``: rewards each turn for the increase of the gold answer's probability (IGPO, arXiv 2510.14967).

Use it for environments whose problems have a gold answer. The text before the answer is that of the ``rstar2`` dialect;
set another one with ``--set advantage.lead="..."``. Groups with equal rewards are kept, since their turns differ.
Ratios are clipped at 0.2 on both sides.
"""

from ..base import TRAINERS, Recipe

IGPO = Recipe(
    name="igpo",
    summary="IGPO: a reward for each turn, the increase of the gold answer's probability",
    paper="arXiv 2510.14967",
    advantage="igpo",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("igpo", IGPO)
