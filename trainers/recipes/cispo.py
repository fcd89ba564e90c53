"""``cispo``: bounds importance weights and keeps the gradient of every token (CISPO, arXiv 2506.13585, section 3.1).

The weight of a token is at most 5: ScaleRL's bound (arXiv 2510.13786), since the CISPO paper does not state a bound. No
token is clipped. The loss is a mean over tokens, without a KL term. The groups of a rollout are divided into sixteen
optimizer steps, as in the paper; in a single step all weights would be 1, which is the plain policy gradient. The paper
also uses DAPO's dynamic sampling and length penalty, which are omitted here: ``--set
selector=all:reject_equal=true,equal=correct --set refill=9 --set reward=return+overlong`` adds them.
"""

from ..base import TRAINERS, Recipe

CISPO = Recipe(
    name="cispo",
    summary="CISPO: importance weights are bounded, and every token keeps its gradient",
    paper="arXiv 2506.13585",
    source="arXiv 2506.13585, section 3.1; verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    loss=("cispo",),
    defaults={"optim": {"minibatches": 16}},
)

TRAINERS.register("cispo", CISPO)
