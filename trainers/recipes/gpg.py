"""``gpg``: the plain policy gradient, scaled up to compensate for groups with equal rewards (GPG, arXiv 2504.02546).

The loss has no ratio, no clip and no KL term, and is a mean over all tokens of the batch.
"""

from ..base import TRAINERS, Recipe

GPG = Recipe(
    name="gpg",
    summary="GPG: the policy gradient, scaled up to compensate for groups with equal rewards",
    paper="arXiv 2504.02546",
    source="verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py; AMAP-ML/GPG@e096da8, README.md",
    checked="2026-11-24",
    advantage="gpg",
    loss=("reinforce",),
)

TRAINERS.register("gpg", GPG)
