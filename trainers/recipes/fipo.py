"""``fipo``: weights each token by how the policy changed on the tokens after it (FIPO, arXiv 2603.19835).

PPO clipped at 0.2 and 0.28, with DAPO's token-level mean and without a KL term; each token has a weight from 0.8 to
1.2. The groups of a rollout are divided into four optimizer steps; in a single step all weights would be 1.
"""

from ..base import TRAINERS, Recipe

FIPO = Recipe(
    name="fipo",
    summary="FIPO: tokens are weighted by how the policy changed on the tokens after them",
    paper="arXiv 2603.19835",
    loss=("fipo",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("fipo", FIPO)
