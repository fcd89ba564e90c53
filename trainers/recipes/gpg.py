"""``gpg``: the plain policy gradient, scaled up for groups without a difference (GPG, arXiv 2504.02546).

No ratio, no clip, no KL term; the mean is over all tokens of the batch.
"""

from ..base import TRAINERS, Recipe

GPG = Recipe(
    name="gpg",
    summary="GPG: the plain policy gradient with the group's mean, kept at its size by the share of mixed groups",
    paper="arXiv 2504.02546",
    advantage="gpg",
    loss=("reinforce",),
)

TRAINERS.register("gpg", GPG)
