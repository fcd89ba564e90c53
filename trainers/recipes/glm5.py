"""``glm5``: importance sampling against the engine, with a two-sided bound on the ratio (GLM-5, arXiv 2602.15763).

Use it for rollouts that run ahead of the optimizer. The ratio is the policy's probability divided by the engine's
probability; a token whose ratio is outside (0.8, 1.2) is excluded from the loss. The advantage is the reward minus the
group's mean. The loss is a mean over tokens, without a KL term. The groups of a rollout are divided into four optimizer
steps. The report does not state the bounds; these are SkyRL's.
"""

from ..base import TRAINERS, Recipe

GLM5 = Recipe(
    name="glm5",
    summary="GLM-5: importance sampling against the engine; tokens with a ratio outside two bounds are excluded",
    paper="arXiv 2602.15763",
    source="arXiv 2602.15763, section 4.1, as quoted in public notes; the report does not state the bounds",
    checked="2026-11-24",
    advantage="group_mean",
    loss=("rollout_is",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("glm5", GLM5)
