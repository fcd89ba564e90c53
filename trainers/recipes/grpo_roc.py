"""``grpo_roc``: GRPO with Resample-on-Correct (rStar2-Agent, arXiv 2508.20722, section 2.2).

Twice as many episodes are played as are trained on. From each group, failures are drawn uniformly; successes are drawn
with a preference for few tool errors and a clean answer format. A right answer that was reached through failing calls
is therefore reinforced less often. The reward depends only on the answer. Ratios are clipped to the range from 0.8 to
1.28; the loss is a mean over tokens, without a KL term. ``selector.mode=rank`` selects as the released code does.
``rollout.refill`` replaces groups whose answers are all right or all wrong.
"""

from ..base import TRAINERS, Recipe

GRPO_ROC = Recipe(
    name="grpo_roc",
    summary="GRPO with Resample-on-Correct: play 2G, keep G, prefer clean successes",
    paper="arXiv 2508.20722",
    source="microsoft/rStar@ecbfb94, rstar2_agent/down_sample/roc.py and examples/run_qwen3-14b_rstar2_agent_weave.sh",
    checked="2026-11-24",
    selector="roc",
    defaults={"rollout": {"oversample": 2}},
)

TRAINERS.register("grpo_roc", GRPO_ROC)
