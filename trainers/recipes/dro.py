"""``dro``: a policy gradient that is held by the square of the log-ratio (DRO, arXiv 2405.19107).

In the form of Tinker and verl: the advantage of the group in place of a learned value, and what sampled the answer in
place of a reference model. Token-level mean. The groups of a rollout are divided into four optimizer steps: with one,
only what the engine computes otherwise is pulled back.
"""

from ..base import TRAINERS, Recipe

DRO = Recipe(
    name="dro",
    summary="DRO: a policy gradient held by the square of the log-ratio, without clipping",
    paper="arXiv 2405.19107",
    advantage="group_mean",
    loss=("dro",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("dro", DRO)
