"""``grpo_roc_clean``: GRPO-RoC (arXiv 2508.20722) with a penalty on the tokens of turns whose calls fail.

Our own, for policies that are to stop making failing calls: of the right episodes those with the fewest defects train
(``roc`` by rank), and in every episode that trains, the advantage of a turn with a failed or malformed call is lower by
1 (``call_penalty``, NeMo-RL's, added instead of set). The reward is that of the environment.
"""

from ..base import TRAINERS, Recipe

GRPO_ROC_CLEAN = Recipe(
    name="grpo_roc_clean",
    summary="GRPO-RoC by rank, with a penalty on the tokens of turns whose calls fail",
    paper="arXiv 2508.20722",
    selector="roc:mode=rank",
    advantage="call_penalty:malformed=-1,failed=-1,how=add",
    defaults={"rollout": {"oversample": 2}},
)

TRAINERS.register("grpo_roc_clean", GRPO_ROC_CLEAN)
