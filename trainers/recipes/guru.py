"""``guru``: trains on several domains at once, each with its own reward (Guru, Reasoning360, arXiv 2506.14965).

GRPO on a mixture of sources (``rstar2/Mixture-v0``). The name of a problem's source selects its reward; a source
without a route ends the run with an error. By default, the paper's six domains use the reward of their environments;
``--set reward.router.routes='{"math": "return"}'`` changes the routes.
"""

from ..base import TRAINERS, Recipe

GURU = Recipe(
    name="guru",
    summary="Guru: several domains at once, each with its own reward",
    paper="arXiv 2506.14965",
    reward=("router",),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.28",),
)

TRAINERS.register("guru", GURU)
