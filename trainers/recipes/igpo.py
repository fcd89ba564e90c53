"""``igpo``: rewards each turn for the increase of the gold answer's probability (IGPO, arXiv 2510.14967).

Use this recipe for environments whose problems have a gold answer. To measure the answer's probability, a text in the
form of the ``rstar2`` dialect is put before the answer; set another text with ``--set advantage.lead="..."``. Groups
with equal rewards are kept, since their turns differ. Ratios are clipped to the range from 0.8 to 1.2; the KL term has
the weight 1e-3, and a rollout has one optimizer step, as in the authors' script.
"""

from ..base import TRAINERS, Recipe

IGPO = Recipe(
    name="igpo",
    summary="IGPO: each turn is rewarded by the increase in the gold answer's probability",
    paper="arXiv 2510.14967",
    source="GuoqingWang1/IGPO@bff163b, policy_optimization.sh",
    checked="2026-11-24",
    advantage="igpo",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=1e-3"),
)

TRAINERS.register("igpo", IGPO)
