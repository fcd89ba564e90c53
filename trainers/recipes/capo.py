"""``capo``: gives the tokens of wrong steps a lower advantage than other tokens (CAPO, arXiv 2508.02298).

By default, a turn with a failed call is a wrong step, which needs no model; ``--set advantage.judge=./mine.py:Judge``
uses another judge. Groups with equal rewards are kept, since their steps may differ.
"""

from ..base import TRAINERS, Recipe

CAPO = Recipe(
    name="capo",
    summary="CAPO: a lower advantage for the tokens of wrong steps, in right and in wrong answers",
    paper="arXiv 2508.02298",
    checked="Not checked: the authors released no code, and only the abstract could be read.",
    advantage="capo",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("capo", CAPO)
