"""``topr``: wrong answers train by an importance weight of at most 1 (TOPR, arXiv 2503.14286).

Correct answers train fully, as in supervised training; wrong answers only while the policy still gives them. An
answer's log-probabilities are summed, here over a constant that only scales the step. No KL term. The groups of a
rollout are divided into four optimizer steps; the paper trains offline too.
"""

from ..base import TRAINERS, Recipe

TOPR = Recipe(
    name="topr",
    summary="TOPR: right answers train whole, wrong ones by an importance weight of at most 1",
    paper="arXiv 2503.14286",
    advantage="group_mean",
    loss=("topr",),
    aggregation="const_len",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("topr", TOPR)
