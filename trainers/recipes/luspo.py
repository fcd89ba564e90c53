"""``luspo``: GSPO with the length of an answer as its weight (LUSPO, arXiv 2602.05261).

In GSPO, the loss of an answer is a mean over its tokens, so each token of a long answer has a smaller gradient.
Multiplying the loss by the answer's length removes this bias. Ratios are GSPO's; the bounds, 2e-3 and 2.5e-3, are the
paper's (section 5.1). The aggregation ``const_len:length=1`` is the sum over all tokens divided by the number of
answers. The groups of a rollout are divided into four optimizer steps.
"""

from ..base import TRAINERS, Recipe

LUSPO = Recipe(
    name="luspo",
    summary="LUSPO: GSPO without its bias towards short answers",
    paper="arXiv 2602.05261",
    source="huggingface/trl@f2cd57710, docs/source/paper_index.md (section 5.1 of the paper)",
    checked="2026-11-24",
    loss=("ppo_clip:level=sequence,low=2e-3,high=2.5e-3",),
    aggregation="const_len:length=1",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("luspo", LUSPO)
