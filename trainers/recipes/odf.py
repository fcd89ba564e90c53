"""``odf``: GRPO on groups with a medium pass rate, in batches of constant size (ODF, arXiv 2504.03380).

This is balanced Online Difficulty Filtering: groups with a pass rate from 0.2 to 0.8 are trained on. Other groups are
replaced in at most nine further rounds, the limit of DAPO's released code; the paper continues until the batch is full.
"""

from ..base import TRAINERS, Recipe

ODF = Recipe(
    name="odf",
    summary="Online Difficulty Filtering: GRPO on groups with a medium pass rate, in batches of constant size",
    paper="arXiv 2504.03380",
    source="arXiv 2504.03380: the bound p (1 - p) / (2 beta^2), the balanced filter and the constant batch. A test "
    "compares the kept groups with bounds computed by hand; the ends of the band, 0.2 and 0.8, come from summaries of "
    "the paper, and no released code was found on 2026-11-30",
    checked="2026-11-29",
    selector="balanced_band",
    defaults={"rollout": {"refill": 9}},
)

TRAINERS.register("odf", ODF)
