"""``dapo``: clip-higher, dynamic sampling, token-level mean, soft penalty on overlong answers (DAPO, arXiv 2503.14476).

Groups whose answers are all right or all wrong are replaced, in at most nine further rounds, as in the released code;
after that, the step trains on the groups that were found. The penalty on overlong answers grows over the last fifth of
``max_episode_tokens``. There is no KL term. A rollout has 16 optimizer steps, as in the paper (512 problems in
minibatches of 32); with fewer than 16 problems per step, a rollout has one optimizer step per problem, and the run
reports this number at its start. To bound the loss of negative advantages too, as in the released code: ``--set
loss.ppo_clip.dual=10``.
"""

from ..base import TRAINERS, Recipe

DAPO = Recipe(
    name="dapo",
    summary="DAPO: clip-higher, dynamic sampling, token-level mean, soft penalty on overlong answers",
    paper="arXiv 2503.14476",
    source="arXiv 2503.14476, section 4.1; verl-project/verl-recipe@48ea0a7, dapo/run_dapo_qwen2.5_32b.sh",
    checked="2026-11-24",
    reward=("return", "overlong"),
    selector="all:reject_equal=true,equal=correct",
    loss=("ppo_clip:low=0.2,high=0.28",),
    defaults={"rollout": {"refill": 9}, "optim": {"minibatches": 16}},
)

TRAINERS.register("dapo", DAPO)
