"""``grpo_roc_ties``: GRPO-RoC (arXiv 2508.20722) that also trains on clean calls if every answer is right.

This recipe is our own. It is for runs in which many groups come to have only right answers. Such a group is kept if the
calls of its episodes differ in quality; its cleaner episodes get the higher advantage (``quality_ties``). All other
groups are treated as in ``grpo_roc``.
"""

from ..base import TRAINERS, Recipe

GRPO_ROC_TIES = Recipe(
    name="grpo_roc_ties",
    summary="GRPO-RoC that also learns from the calls of groups in which every answer is right",
    paper="arXiv 2508.20722",
    source="microsoft/rStar@ecbfb94, rstar2_agent/down_sample/roc.py, for the selection; the rest is our own",
    checked="2026-11-24",
    selector="quality_ties:of=(roc:mode=rank)",
    advantage="quality_ties",
    defaults={"rollout": {"oversample": 2}},
)

TRAINERS.register("grpo_roc_ties", GRPO_ROC_TIES)
