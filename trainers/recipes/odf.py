"""``odf``: GRPO on groups of middling pass rate alone, in batches of constant size (arXiv 2504.03380).

Online Difficulty Filtering, balanced: groups with a pass rate from 0.2 to 0.8 train, and others are replaced by fresh
ones, for nine rounds after the first (the bound of DAPO's released code; the paper plays until the batch is full).
"""

from ..base import TRAINERS, Recipe

ODF = Recipe(
    name="odf",
    summary="Online Difficulty Filtering: GRPO on groups of middling pass rate, in batches of constant size",
    paper="arXiv 2504.03380",
    selector="balanced_band",
    defaults={"rollout": {"refill": 9}},
)

TRAINERS.register("odf", ODF)
