"""``topr``: gives wrong answers an importance weight of at most 1 (TOPR, arXiv 2503.14286).

Right answers have the weight 1, as in supervised training; the weight of a wrong answer falls to 0 as the answer
becomes improbable. The log-probabilities of an answer are summed; here the sum is divided by a constant, which only
scales the step. There is no KL term. The groups of a rollout are divided into four optimizer steps; the paper also
trains offline.
"""

from ..base import TRAINERS, Recipe

TOPR = Recipe(
    name="topr",
    summary="TOPR: right answers have the weight 1, wrong answers an importance weight of at most 1",
    paper="arXiv 2503.14286",
    source="alibaba/ROLL@8eb27cc2, roll/pipeline/agentic/agentic_actor_pg_worker.py",
    checked="2026-11-24",
    advantage="group_mean",
    loss=("topr",),
    aggregation="const_len",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("topr", TOPR)
