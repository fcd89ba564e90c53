"""``otb``: REINFORCE with the baseline of least variance at each token (OTB, arXiv 2602.07078).

The theory is about the plain policy gradient, summed over the tokens of an episode and averaged over episodes, with one
update a rollout; so there is no ratio, and the loss is divided by a constant. Groups of 4 are enough, as the paper
finds, where a mean over the group takes 32: ``--set group_size=4``.
"""

from ..base import TRAINERS, Recipe

OTB = Recipe(
    name="otb",
    summary="OTB: REINFORCE with a baseline for each token, for long episodes with tools",
    paper="arXiv 2602.07078",
    selector="all:reject_equal=true",
    advantage="optimal_token_baseline",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("otb", OTB)
