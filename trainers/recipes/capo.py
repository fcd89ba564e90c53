"""``capo``: gives the tokens of wrong steps a lower advantage than other tokens (CAPO, arXiv 2508.02298).

By default, no model judges: a turn with a failed call is a wrong step. ``--set advantage.judge=./mine.py:Judge``
uses another judge. Groups with equal rewards are kept, since their steps may differ. In the paper, a model with 72
billion parameters gives four critiques, and 16 episodes are sampled per problem.
"""

from ..base import TRAINERS, Recipe

CAPO = Recipe(
    name="capo",
    summary="CAPO: a lower advantage for the tokens of wrong steps, in right and in wrong answers",
    paper="arXiv 2508.02298",
    source="arXiv 2508.02298, the reward, the voting and the ablation of the weights, as quoted in "
    "zzy20020728/my_obsidian@2a691a5, wiki/papers/xie-2025-capo.md; andyclsr/CAPO@95b8f34 contains no code",
    checked="2026-11-28",
    advantage="capo",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("capo", CAPO)
