"""``cog_rethinker``: DAPO that helps where no episode is right (Cog-Rethinker, arXiv 2510.15979).

Problems that a group does not solve are decomposed, with solved ones as examples, and then reflected upon; what is
right with help is learnt by supervision under the question alone (``sft``), while its group is rejected as in DAPO.
``loss.sft.coef`` is the paper's lambda; its value and the rounds of refill are ours.
"""

from ..base import TRAINERS, Recipe

COG_RETHINKER = Recipe(
    name="cog_rethinker",
    summary="Cog-Rethinker: decompose and reflect on unsolved problems, and learn them without the help",
    paper="arXiv 2510.15979",
    rollout="decompose",
    reward=("return", "overlong"),
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=0.2,high=0.28", "sft:coef=0.1"),
    defaults={"rollout": {"refill": 3}},
)

TRAINERS.register("cog_rethinker", COG_RETHINKER)
