"""``grpo_roc_clean``: GRPO-RoC (arXiv 2508.20722) with a penalty on the tokens of turns whose calls fail.

This recipe is our own, for policies that must stop making failing calls. Among the right episodes of a group, the
episodes with the fewest defects are trained on (``roc`` by rank). In every selected episode, the advantage of a turn
with a failed or malformed call is lowered by 1 (NeMo-RL's ``call_penalty``, but added to the advantage instead of
replacing it). The reward is the environment's.
"""

from ..base import TRAINERS, Recipe

GRPO_ROC_CLEAN = Recipe(
    name="grpo_roc_clean",
    summary="GRPO-RoC that selects by rank, with a penalty on the tokens of turns whose calls fail",
    paper="arXiv 2508.20722",
    source="microsoft/rStar@ecbfb94, rstar2_agent/down_sample/roc.py, for the selection; the rest is our own",
    checked="2026-11-24",
    selector="roc:mode=rank",
    advantage="call_penalty:malformed=-1,failed=-1,how=add",
    defaults={"rollout": {"oversample": 2}},
)

TRAINERS.register("grpo_roc_clean", GRPO_ROC_CLEAN)
