"""``gdpo``: normalizes the components of the reward separately (GDPO, arXiv 2601.05242).

The components are the environment's return and whether exactly one answer was marked. Set other components with
``reward``, and their weights with ``advantage.weights``. Groups whose episodes have equal sums of components are
kept, since the components may differ.
"""

from ..base import TRAINERS, Recipe

GDPO = Recipe(
    name="gdpo",
    summary="GDPO: each component of the reward is normalized over the group, and their sum over the batch",
    paper="arXiv 2601.05242",
    source="NVlabs/GDPO@b080e63, README.md and trl-GDPO/open-r1/recipes; verl-project/verl@1dda039b9, "
    "verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    reward=("return", "answer_format"),
    advantage="gdpo",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("gdpo", GDPO)
