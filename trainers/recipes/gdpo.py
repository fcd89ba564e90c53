"""``gdpo``: components of the reward are normalized apart (GDPO, arXiv 2601.05242).

The components are the environment's return and whether exactly one answer was marked; name others with ``reward``, and
weigh them with ``advantage.weights``. Groups of equal sums stay, since their components may differ.
"""

from ..base import TRAINERS, Recipe

GDPO = Recipe(
    name="gdpo",
    summary="GDPO: every component of the reward is normalized over the group, and their sum over the batch",
    paper="arXiv 2601.05242",
    reward=("return", "answer_format"),
    advantage="gdpo",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("gdpo", GDPO)
