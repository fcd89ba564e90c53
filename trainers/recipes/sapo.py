"""``sapo``: a soft gate instead of clipping (SAPO, arXiv 2511.20347).

The gradient of a token fades smoothly as its ratio leaves 1, sooner where the advantage is negative. Every answer
weighs the same, no KL term. The groups of a rollout are divided into four optimizer steps: with one, all ratios are 1.
"""

from ..base import TRAINERS, Recipe

SAPO = Recipe(
    name="sapo",
    summary="SAPO: a gate that fades smoothly with the ratio, instead of clipping",
    paper="arXiv 2511.20347",
    loss=("sapo",),
    aggregation="seq_mean",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("sapo", SAPO)
