"""``cispo``: bounds importance weights and keeps the gradient of every token (CISPO, arXiv 2506.13585, section 3.1).

The weight of a token is at most 5: ScaleRL's bound (arXiv 2510.13786), since the paper does not state a bound. No token
is clipped. The loss is a mean over tokens, without a KL term. The groups of a rollout are divided into four optimizer
steps (up to sixteen in the paper); in a single step all weights would be 1, which is the plain policy gradient.
"""

from ..base import TRAINERS, Recipe

CISPO = Recipe(
    name="cispo",
    summary="CISPO: importance weights are bounded, and every token keeps its gradient",
    paper="arXiv 2506.13585",
    loss=("cispo",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("cispo", CISPO)
