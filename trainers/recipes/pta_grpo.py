"""``pta_grpo``: rewards plans by the results of further episodes (PTA-GRPO, arXiv 2510.01833).

The reward consists of the outcome, the format, and the share of right answers among four further episodes that continue
from the end of the plan. The policy writes its plan between ``<plan>`` and ``</plan>``: request it in the environment's
prompt, and teach it by a cold start, as in the paper. For episodes without a plan, only outcome and format count.
"""

from ..base import TRAINERS, Recipe

PTA_GRPO = Recipe(
    name="pta_grpo",
    summary="PTA-GRPO: plans are rewarded by the results of further episodes",
    paper="arXiv 2510.01833",
    checked="Not checked: the weights of the rewards and the training details were searched for on 2026-11-28 and not "
    "found, in both versions of arXiv 2510.01833, on the authors' page and in public code; public summaries state the "
    "rewards for the outcome, the format, and the success of several episodes per plan, as here.",
    reward=("return", "plan_value", "answer_format"),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("pta_grpo", PTA_GRPO)
