"""``dapo``: clip-higher, dynamic sampling, token-level mean, soft punishment of overlong answers (arXiv 2503.14476).

Groups that are all right or all wrong are replaced by fresh ones, for nine rounds after the first, as in the released
code; what is there then trains. The punishment grows over the last fifth of ``max_episode_tokens``. No KL term.
"""

from ..base import TRAINERS, Recipe

DAPO = Recipe(
    name="dapo",
    summary="DAPO: clip-higher, dynamic sampling, token-level mean, soft punishment of overlong answers",
    paper="arXiv 2503.14476",
    reward=("return", "overlong"),
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=0.2,high=0.28",),
    defaults={"rollout": {"refill": 9}},
)

TRAINERS.register("dapo", DAPO)
