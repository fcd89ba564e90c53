"""``rover``: fits log-probabilities to the action values of a uniformly random policy (ROVER, arXiv 2509.24981).

The advantage is the reward minus the group's mean; ``--set advantage=group_norm`` also divides by the deviation, as the
authors do for mathematics. The temperature is 0.6; a rollout has four optimizer steps. Groups with equal rewards
are kept, since the target of a token also contains the change of the next token's value. There is no clipping and no KL
term.
"""

from ..base import TRAINERS, Recipe

ROVER = Recipe(
    name="rover",
    summary="ROVER: regression towards the values of the uniform policy, for diverse right answers",
    paper="arXiv 2509.24981",
    source="tinnerhrhe/ROVER@b0fa587, Math/scripts/deepscaler/train/rover_qwen3_8b.sh",
    checked="2026-11-24",
    advantage="group_mean",
    loss=("rover",),
    defaults={"optim": {"minibatches": 4}, "rollout": {"temperature": 0.6}},
)

TRAINERS.register("rover", ROVER)
