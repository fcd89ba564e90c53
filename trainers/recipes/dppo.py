"""``dppo``: a trust region on probabilities instead of their ratio (DPPO, arXiv 2602.04879).

A token is excluded from the loss if its probability has moved by more than 0.15 from the engine's probability, in the
direction of its advantage. ``--set loss.dppo.divergence=kl`` uses the binary divergence with the bound 0.05. The loss
is a mean over tokens, without a KL term. The groups of a rollout are divided into four optimizer steps.
"""

from ..base import TRAINERS, Recipe

DPPO = Recipe(
    name="dppo",
    summary="DPPO: a trust region on the change of probabilities instead of on their ratio",
    paper="arXiv 2602.04879",
    loss=("dppo",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("dppo", DPPO)
