"""``otb``: REINFORCE with the minimum-variance baseline at each token (OTB, arXiv 2602.07078).

The theory covers the plain policy gradient, summed over the tokens of an episode and averaged over episodes, with one
update per rollout. Therefore there is no ratio, and the loss is divided by a constant. The paper finds that groups of 4
suffice, whereas the group's mean as baseline needs groups of 32: ``--set group_size=4``.
"""

from ..base import TRAINERS, Recipe

OTB = Recipe(
    name="otb",
    summary="OTB: REINFORCE with a baseline for each token, for long episodes with tools",
    paper="arXiv 2602.07078",
    source="verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py and examples/otb_trainer/run_qwen3_8b_fsdp.sh",
    checked="2026-11-24",
    advantage="optimal_token_baseline",
    loss=("reinforce",),
    aggregation="const_len",
)

TRAINERS.register("otb", OTB)
