"""``capo``: the tokens of wrong steps earn less than the others (CAPO, arXiv 2508.02298).

A turn whose call failed is a wrong step, which needs no model; ``--set advantage.judge=./mine.py:Judge`` asks another
judge. Groups of equal rewards stay, since their steps may differ.
"""

from ..base import TRAINERS, Recipe

CAPO = Recipe(
    name="capo",
    summary="CAPO: tokens of wrong steps lose, right or wrong as the answer may be",
    paper="arXiv 2508.02298",
    advantage="capo",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("capo", CAPO)
