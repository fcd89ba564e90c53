"""``mt_r1_zero``: rewards translations for their format and a metric such as BLEU (MT-R1-Zero, arXiv 2504.10160).

The algorithm is GRPO. A translation earns +1 for a correct format, plus 2 if its metric is above a threshold, or -1.5
if it is below. A broken format earns -3. The gold answer of each problem must be a text. ``--set
reward.metric_threshold.how=continuous`` adds the value of the metric instead, as in the authors' script; ``--set
reward.metric_threshold.metric=./mine.py:comet`` replaces BLEU by another metric.
"""

from ..base import TRAINERS, Recipe

MT_R1_ZERO = Recipe(
    name="mt_r1_zero",
    summary="MT-R1-Zero: rewards for the format and for a translation metric of the answer",
    paper="arXiv 2504.10160",
    source="fzp0424/MT-R1-Zero@a2e38c4, main_grpo.sh and verl/utils/reward_score/mt_score.py",
    checked="2026-11-24",
    reward=("metric_threshold",),
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("mt_r1_zero", MT_R1_ZERO)
