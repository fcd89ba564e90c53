"""``lite_ppo``: two techniques over plain PPO without a critic (Lite PPO, arXiv 2508.08221, section 5).

The advantage is centred on the group's mean and divided by the batch's standard deviation; the loss is a mean over
tokens. The deviation is that of the raw rewards; ``advantage.of=centred`` takes that of the centred ones, as the paper
can be read too. Clipping 0.2 on both sides, no KL term.
"""

from ..base import TRAINERS, Recipe

LITE_PPO = Recipe(
    name="lite_ppo",
    summary="Lite PPO: the group's mean, the batch's deviation, token-level mean",
    paper="arXiv 2508.08221",
    advantage="group_mean_batch_std",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("lite_ppo", LITE_PPO)
