"""``dppo``: a trust region by the probabilities instead of their ratio (DPPO, arXiv 2602.04879).

A token is dropped when its probability has moved by more than 0.15 from what the engine said, in the direction of its
advantage; ``--set loss.dppo.divergence=kl`` goes by the binary divergence, with 0.05. Token-level mean, no KL term. The
groups of a rollout are divided into four optimizer steps.
"""

from ..base import TRAINERS, Recipe

DPPO = Recipe(
    name="dppo",
    summary="DPPO: tokens are dropped by how far their probability has moved, not by their ratio",
    paper="arXiv 2602.04879",
    loss=("dppo",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("dppo", DPPO)
