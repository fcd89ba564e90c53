"""``igpo``: every turn earns what it adds to the probability of the gold answer (IGPO, arXiv 2510.14967).

For environments whose problems have a gold answer. The text that goes before it is that of the ``rstar2`` dialect;
``--set advantage.lead="..."`` says how another policy would give it. Groups whose rewards are all equal are kept: their
turns still differ. Clipping 0.2 on both sides.
"""

from ..base import TRAINERS, Recipe

IGPO = Recipe(
    name="igpo",
    summary="IGPO: a reward for each turn, the gain in the probability of the gold answer",
    paper="arXiv 2510.14967",
    advantage="igpo",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("igpo", IGPO)
