"""``dapo``: clip-higher, dynamic sampling, token-level mean, soft penalty on overlong answers (DAPO, arXiv 2503.14476).

Groups whose answers are all right or all wrong are replaced, in at most nine further rounds, as in the released code;
the step then trains on the groups that it has. The penalty grows over the last fifth of ``max_episode_tokens``. There
is no KL term.
"""

from ..base import TRAINERS, Recipe

DAPO = Recipe(
    name="dapo",
    summary="DAPO: clip-higher, dynamic sampling, token-level mean, soft penalty on overlong answers",
    paper="arXiv 2503.14476",
    reward=("return", "overlong"),
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=0.2,high=0.28",),
    defaults={"rollout": {"refill": 9}},
)

TRAINERS.register("dapo", DAPO)
