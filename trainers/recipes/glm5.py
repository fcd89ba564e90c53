"""``glm5``: importance sampling against the engine, with a two-sided bound on the ratio (GLM-5, arXiv 2602.15763).

Use this recipe for rollouts that run ahead of the optimizer. The ratio is the policy's probability divided by the
engine's probability; a token whose ratio is outside (0.5, 2) is excluded from the loss. The advantage is the reward
minus the group's mean. The loss is a mean over tokens, without a KL term. The groups of a rollout are divided into four
optimizer steps. The GLM-5 report does not state the bounds; the values come from the authors' script for GLM-5.2.
"""

from ..base import TRAINERS, Recipe

GLM5 = Recipe(
    name="glm5",
    summary="GLM-5: importance sampling against the engine; tokens with a ratio outside two bounds are excluded",
    paper="arXiv 2602.15763",
    source="arXiv 2602.15763, section 4.1, as quoted in public notes; THUDM/slime@624b824, icepop_function in "
    "slime/backends/megatron_utils/loss.py, and scripts/run-glm5.2-744B-A40B.sh for the bounds",
    checked="2026-11-30",
    advantage="group_mean",
    loss=("rollout_is:low=0.5,high=1",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("glm5", GLM5)
