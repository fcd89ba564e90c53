"""``rlsp``: rewards exploration in addition to the outcome, for longer reasoning (RLSP, arXiv 2502.06773).

The reward is the environment's return plus a penalty that becomes smaller as the reasoning becomes longer; the KL term
has the weight 0.05. With a judge: ``--set reward=return:weight=0.8+exploration:how=creativity,weight=0.2``. The paper
trains with PPO and a critic; here, the baseline is the group's mean.
"""

from ..base import TRAINERS, Recipe

RLSP = Recipe(
    name="rlsp",
    summary="RLSP: the outcome, and a reward for longer or more creative reasoning",
    paper="arXiv 2502.06773",
    reward=("return", "exploration"),
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=0.05"),
)

TRAINERS.register("rlsp", RLSP)
