"""``vespo``: a smooth function of an answer's importance weight instead of clipping (VESPO, arXiv 2602.10693).

The weight is a function of the product of an answer's ratios: 1 if the product is 1, and near 0 if the product is far
from 1, with the constants of the released code. The loss is a mean over tokens, without a KL term. The groups of a
rollout are divided into eight optimizer steps; the authors' scripts use 8 to 64.
"""

from ..base import TRAINERS, Recipe

VESPO = Recipe(
    name="vespo",
    summary="VESPO: importance weights of whole answers, reshaped smoothly instead of clipped",
    paper="arXiv 2602.10693",
    source="FloyedShen/VESPO@aa1f3045, recipe/vespo/code/core_algos.py and recipe/vespo/run/sync/vespo_N_8.sh; "
    "huggingface/trl@f2cd57710, docs/source/paper_index.md",
    checked="2026-11-24",
    loss=("vespo",),
    defaults={"optim": {"minibatches": 8}},
)

TRAINERS.register("vespo", VESPO)
