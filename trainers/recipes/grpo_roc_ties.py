"""``grpo_roc_ties``: GRPO-RoC (arXiv 2508.20722) that goes on teaching clean calls where every answer is right.

Our own, for environments that a policy comes to solve: groups that are all right are kept if their calls differ, and
the cleaner episodes of them get the higher advantage (``quality_ties``). All other groups are those of ``grpo_roc``.
"""

from ..base import TRAINERS, Recipe

GRPO_ROC_TIES = Recipe(
    name="grpo_roc_ties",
    summary="GRPO-RoC that also learns from the calls of groups in which every answer is right",
    paper="arXiv 2508.20722",
    selector="quality_ties:of=(roc:mode=rank)",
    advantage="quality_ties",
    defaults={"rollout": {"oversample": 2}},
)

TRAINERS.register("grpo_roc_ties", GRPO_ROC_TIES)
