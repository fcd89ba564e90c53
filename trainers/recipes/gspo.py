"""``gspo``: computes and clips one ratio for each answer (GSPO, arXiv 2507.18071, section 4).

The ratio of an answer is the geometric mean of its tokens' ratios, so its bounds, 3e-4 and 4e-4, are far narrower than
usual bounds for tokens. Every answer has the same weight. The groups of a rollout are divided into four optimizer
steps; after the first of them the ratios differ from 1. Groups with equal rewards count in the mean of the loss, and
there is no KL term.
"""

from ..base import TRAINERS, Recipe

GSPO = Recipe(
    name="gspo",
    summary="GSPO: importance ratios and clipping of whole answers instead of tokens",
    paper="arXiv 2507.18071",
    source="arXiv 2507.18071, section 5.1; verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    loss=("ppo_clip:level=sequence,low=3e-4,high=4e-4",),
    aggregation="seq_mean",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("gspo", GSPO)
