"""``dro``: a policy gradient with a penalty on the squared log-ratio (DRO, arXiv 2405.19107).

As in Tinker and verl, the group's advantage replaces the learned value function, and the sampling policy replaces the
reference model. The loss is a mean over tokens. The groups of a rollout are divided into four optimizer steps; in a
single step, the penalty would only reduce the difference between engine and trainer.
"""

from ..base import TRAINERS, Recipe

DRO = Recipe(
    name="dro",
    summary="DRO: a policy gradient with a penalty on the squared log-ratio, without clipping",
    paper="arXiv 2405.19107",
    source="verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    advantage="group_mean",
    loss=("dro",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("dro", DRO)
