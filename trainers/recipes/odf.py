"""``odf``: GRPO on groups with a medium pass rate, in batches of constant size (ODF, arXiv 2504.03380).

This is balanced Online Difficulty Filtering: groups with a pass rate from 0.2 to 0.8 are trained on. Other groups are
replaced in at most nine further rounds, the limit of DAPO's released code; the paper continues until the batch is full.
"""

from ..base import TRAINERS, Recipe

ODF = Recipe(
    name="odf",
    summary="Online Difficulty Filtering: GRPO on groups with a medium pass rate, in batches of constant size",
    paper="arXiv 2504.03380",
    checked="Not checked: the bounds of the band. On 2026-11-28 they were found neither in the two versions of arXiv "
    "2504.03380 nor in the ACL Anthology (2026.eacl-long.30) nor in public code; a further search on 2026-11-29 found "
    "no code of the authors. The abstract and overviews state the "
    "balanced filter and the constant batch, as in this recipe.",
    selector="balanced_band",
    defaults={"rollout": {"refill": 9}},
)

TRAINERS.register("odf", ODF)
