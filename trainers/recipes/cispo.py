"""``cispo``: bounded importance weights, and a gradient for every token (CISPO, arXiv 2506.13585, section 3.1).

The weight of a token is at most 5 (ScaleRL's bound, arXiv 2510.13786; the paper does not say its own), and no token is
clipped away. Token-level mean, no KL term. The groups of a rollout are divided into four optimizer steps: with one, all
weights are 1, and this is the plain policy gradient. The paper takes up to sixteen.
"""

from ..base import TRAINERS, Recipe

CISPO = Recipe(
    name="cispo",
    summary="CISPO: importance weights are bounded, and no token loses its gradient",
    paper="arXiv 2506.13585",
    loss=("cispo",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("cispo", CISPO)
