"""``luspo``: GSPO with the length of an answer as its weight (LUSPO, arXiv 2602.05261).

In GSPO, the loss of an answer is a mean over its tokens, so each token of a long answer has a smaller gradient.
Multiplying by the length removes this bias. Ratios and bounds are GSPO's. The aggregation ``const_len:length=1`` is the
sum over all tokens divided by the number of answers. The groups of a rollout are divided into four optimizer steps.
"""

from ..base import TRAINERS, Recipe

LUSPO = Recipe(
    name="luspo",
    summary="LUSPO: GSPO without its bias towards short answers",
    paper="arXiv 2602.05261",
    loss=("ppo_clip:level=sequence,low=3e-4,high=4e-4",),
    aggregation="const_len:length=1",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("luspo", LUSPO)
