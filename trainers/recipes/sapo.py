"""``sapo``: a gradient that fades smoothly away from a ratio of 1, instead of clipping (SAPO, arXiv 2511.20347).

The gradient of a token decreases smoothly as its ratio moves away from 1, and faster if its advantage is negative.
Every answer has the same weight; there is no KL term. The groups of a rollout are divided into four optimizer steps; in
a single step all ratios would be 1.
"""

from ..base import TRAINERS, Recipe

SAPO = Recipe(
    name="sapo",
    summary="SAPO: a gate that closes smoothly as the ratio moves away from 1, instead of clipping",
    paper="arXiv 2511.20347",
    source="huggingface/trl@f2cd57710, docs/source/paper_index.md; verl-project/verl@1dda039b9, "
    "verl/trainer/ppo/core_algos.py and examples/sapo_trainer/run_qwen3_8b_fsdp.sh",
    checked="2026-11-24",
    loss=("sapo",),
    aggregation="seq_mean",
    defaults={"optim": {"minibatches": 4}},
)

TRAINERS.register("sapo", SAPO)
