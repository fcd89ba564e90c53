"""``glm5``: importance sampling against the engine, with tokens dropped on both sides (GLM-5, arXiv 2602.15763).

For rollouts that run ahead of the optimizer: the only ratio is that of the policy to what the engine said, and a token
out of (0.8, 1.2) does not train. The advantage is the reward less the group's mean. Token-level mean, no KL term. The
groups of a rollout are divided into four optimizer steps.
"""

from ..base import TRAINERS, Recipe

GLM5 = Recipe(
    name="glm5",
    summary="GLM-5: importance sampling against the engine, with tokens dropped on both sides",
    paper="arXiv 2602.15763",
    advantage="group_mean",
    loss=("rollout_is",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("glm5", GLM5)
