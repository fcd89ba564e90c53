"""``guru``: several domains at once, each with a reward of its own (Guru, Reasoning360, arXiv 2506.14965).

GRPO on a mixture of sources (``rstar2/Mixture-v0``), whose names choose the reward; one without a route ends the run
with an error. By default the paper's six domains get what their environments pay: ``--set
reward.router.routes='{"math": "return"}'`` says otherwise.
"""

from ..base import TRAINERS, Recipe

GURU = Recipe(
    name="guru",
    summary="Guru: several domains at once, each with a reward of its own",
    paper="arXiv 2506.14965",
    reward=("router",),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.28",),
)

TRAINERS.register("guru", GURU)
