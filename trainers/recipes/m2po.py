"""``m2po``: a trust region over the whole batch, for old rollouts (M2PO, arXiv 2510.01161).

Tokens with the largest log-ratios are excluded until the mean of the squared log-ratios is below 0.04; nothing is
clipped. The loss is a mean over tokens, without a KL term. Each step needs one more forward pass. The groups of a
rollout are divided into four optimizer steps; the paper trains on rollouts up to 256 steps old. To count only tokens
that clipping could act on, as in the authors' code: ``--set loss.m2po.of=harmful``.
"""

from ..base import TRAINERS, Recipe

M2PO = Recipe(
    name="m2po",
    summary="M2PO: outliers are excluded until the second moment of the log-ratios is small",
    paper="arXiv 2510.01161",
    source="Infini-AI-Lab/M2PO@af54a3e, train-scripts/m2po-qwen-math-7b-s256.sh and verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    loss=("m2po",),
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("m2po", M2PO)
