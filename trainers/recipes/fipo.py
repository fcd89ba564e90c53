"""``fipo``: tokens are weighted by what the policy has made of their future (FIPO, arXiv 2603.19835).

PPO clipped at 0.2 and 0.28, with DAPO's token-level mean and no KL term, each token times a weight from 0.8 to 1.2. The
groups of a rollout are divided into four optimizer steps: with one, all weights are 1.
"""

from ..base import TRAINERS, Recipe

FIPO = Recipe(
    name="fipo",
    summary="FIPO: tokens are weighted by how the policy has moved on what follows them",
    paper="arXiv 2603.19835",
    loss=("fipo",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("fipo", FIPO)
