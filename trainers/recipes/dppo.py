"""``dppo``: a trust region on probabilities instead of their ratio (DPPO, arXiv 2602.04879).

A token is excluded from the loss if its probability has moved by more than 0.15 from the engine's probability, in the
direction of its advantage. ``--set loss.dppo.divergence=kl`` uses the binary KL divergence with the bound 0.05. The
loss of an answer is divided by a constant, and there is no KL term. The groups of a rollout are divided into eight
optimizer steps. The loss and the number of steps are as in verl's script.
"""

from ..base import TRAINERS, Recipe

DPPO = Recipe(
    name="dppo",
    summary="DPPO: a trust region on the change of probabilities instead of on their ratio",
    paper="arXiv 2602.04879",
    source="verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py and "
    "examples/dppo_trainer/run_qwen3_30b_a3b_megatron.sh",
    checked="2026-11-24",
    loss=("dppo",),
    aggregation="const_len",
    defaults={"optim": {"minibatches": 8}},
)

TRAINERS.register("dppo", DPPO)
