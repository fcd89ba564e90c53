"""``rlpr``: the probability of the gold answer as the reward, without a verifier (RLPR, arXiv 2506.18254).

The reward is 0.9 times the amount by which the reasoning raises the mean probability of the gold answer's tokens, plus
0.1 for the format. A group is replaced if the deviation of its rewards is less than half the average of recent groups.
Ratios are clipped to the range from 0.8 to 1.27; each problem has 8 episodes, and a rollout has four optimizer steps.
Use this recipe for problems whose answers are texts that no rule can compare. The engine must compute log-probabilities
of given tokens (``engine=transformers``).
"""

from ..base import TRAINERS, Recipe

RLPR = Recipe(
    name="rlpr",
    summary="RLPR: the probability of the gold answer as reward; groups with similar rewards are replaced",
    paper="arXiv 2506.18254",
    source="OpenBMB/RLPR@8490fca, examples/RLPR/reproduce_qwen.sh",
    checked="2026-11-24",
    reward=("reference_probability:weight=0.9", "answer_format:weight=0.1"),
    selector="deviation",
    loss=("ppo_clip:low=0.2,high=0.27",),
    defaults={"rollout": {"group_size": 8, "refill": 3}, "optim": {"minibatches": 4}},
)

TRAINERS.register("rlpr", RLPR)
