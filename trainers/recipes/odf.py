"""``odf``: GRPO on groups with a medium pass rate, in batches of constant size (ODF, arXiv 2504.03380).

Online Difficulty Filtering, balanced: groups with a pass rate from 0.2 to 0.8 are trained on. Other groups are replaced
in at most nine further rounds, the limit of DAPO's released code; the paper continues until the batch is full.
"""

from ..base import TRAINERS, Recipe

ODF = Recipe(
    name="odf",
    summary="Online Difficulty Filtering: GRPO on groups with a medium pass rate, in batches of constant size",
    paper="arXiv 2504.03380",
    checked="Not checked: the authors released no code, and only the abstract and an overview could be read, "
    "without the bounds.",
    selector="balanced_band",
    defaults={"rollout": {"refill": 9}},
)

TRAINERS.register("odf", ODF)
