"""``opo``: exactly on-policy updates, with a minimum-variance baseline (OPO, arXiv 2505.23585).

A rollout has one update, without a clip, a KL term or an entropy bonus. An answer is one action, so the
log-probabilities of its tokens are summed.
"""

from ..base import TRAINERS, Recipe

OPO = Recipe(
    name="opo",
    summary="OPO: the plain policy gradient, with the group's mean weighted by length as baseline",
    paper="arXiv 2505.23585",
    source="verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py; microsoft/LMOps@4f2a9de, opo/README.md",
    checked="2026-11-24",
    advantage="opo",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("opo", OPO)
