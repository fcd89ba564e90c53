"""``rlsp``: rewards exploration in addition to the outcome, to lengthen reasoning (RLSP, arXiv 2502.06773).

The environment's return, and a penalty that shrinks as the reasoning grows; a KL term of 0.05. With a judge: ``--set
reward=return:weight=0.8+exploration:how=creativity,weight=0.2``. The paper trains with PPO and a critic; here the group
is the baseline.
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
