"""``pta_grpo``: rewards plans by the results of further episodes (PTA-GRPO, arXiv 2510.01833).

The reward consists of the outcome, the format, and the share of right answers among four further episodes that continue
from the end of the plan. The wrapper ``instruction`` asks for a plan between ``<plan>`` and ``</plan>`` in training and
in evaluation, in any environment; the words of the request are our own. The paper also teaches plans by a cold start.
For episodes without a plan, only outcome and format count.
"""

from ..base import TRAINERS, Recipe

REQUEST = """\
Before you solve the problem, write a short plan of the solution between <plan> and </plan>: the main steps, without \
their computations and without the answer. Then follow the plan."""
_ASKED = {"wrappers": [["instruction", {"text": REQUEST}]]}

PTA_GRPO = Recipe(
    name="pta_grpo",
    summary="PTA-GRPO: plans are rewarded by the results of further episodes",
    paper="arXiv 2510.01833",
    source="the abstract of arXiv 2510.01833, and summaries of the paper. According to these texts, the reward is the "
    "sum of the outcome, the format, and the mean accuracy of further episodes that continue from the plan. Neither "
    "the abstract nor the summaries state the weights of this sum, the clip, or the sizes of groups and batches. A "
    "test compares the reward with sums computed by hand; no released code was found on 2026-11-30",
    checked="2026-11-29",
    reward=("return", "plan_value", "answer_format"),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={"rollout": _ASKED, "eval": _ASKED},
)

TRAINERS.register("pta_grpo", PTA_GRPO)
