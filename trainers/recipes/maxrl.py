"""``maxrl``: advantages divided by the pass rate, to maximize the likelihood of success (MaxRL, arXiv 2602.02710).

The larger the groups are, the closer the objective is to the likelihood. Ratios are clipped to the range from 0.8 to
1.2, the loss is a mean over tokens without a KL term, and groups with equal rewards count in this mean, as in
the authors' code.
"""

from ..base import TRAINERS, Recipe

MAXRL = Recipe(
    name="maxrl",
    summary="MaxRL: the reward minus the group's mean, divided by the mean; rare successes have more weight",
    paper="arXiv 2602.02710",
    source="tajwarfahim/maxrl@c0698eb, verl/trainer/ppo/core_algos.py and qwen3_experiments/run_qwen3_training.sh",
    checked="2026-11-24",
    advantage="maxrl",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("maxrl", MAXRL)
