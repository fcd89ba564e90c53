"""``pta_grpo``: plans that lead further episodes to right answers are rewarded (PTA-GRPO, arXiv 2510.01833).

The outcome, the format, and the share of right ones among four further episodes from the end of the plan, which the
policy writes between ``<plan>`` and ``</plan>``: ask for it in the environment's prompt, and teach it by a cold start
as the paper does. Episodes without a plan have the first two alone.
"""

from ..base import TRAINERS, Recipe

PTA_GRPO = Recipe(
    name="pta_grpo",
    summary="PTA-GRPO: plans are worth what further episodes achieve with them",
    paper="arXiv 2510.01833",
    reward=("return", "plan_value", "answer_format"),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("pta_grpo", PTA_GRPO)
