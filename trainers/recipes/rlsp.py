"""``rlsp``: rewards long reasoning (exploration) in addition to the outcome (RLSP, arXiv 2502.06773).

The reward is the environment's return plus a penalty that becomes smaller as the reasoning becomes longer; the KL term
has the weight 0.05. To reward creativity, which a judge scores: ``--set
reward=return:weight=0.8+exploration:how=creativity,weight=0.2``. The paper trains with PPO and a critic; here, the
baseline is the group's mean. As in the authors' script, the temperature is 0.7 and a rollout has four optimizer steps.
"""

from ..base import TRAINERS, Recipe

RLSP = Recipe(
    name="rlsp",
    summary="RLSP: the outcome, and a reward for longer or more creative reasoning",
    paper="arXiv 2502.06773",
    source="GuanghaoYe/Emergence-of-Thinking@e7feea7, examples/scripts/train_ppo_llama_ray_8B_rm_multi_numinamath.sh",
    checked="2026-11-24",
    reward=("return", "exploration"),
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=0.05"),
    defaults={"rollout": {"temperature": 0.7}, "optim": {"minibatches": 4}},
)

TRAINERS.register("rlsp", RLSP)
