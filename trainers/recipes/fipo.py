"""``fipo``: weights each token by the policy's change on the tokens after it (FIPO, arXiv 2603.19835).

PPO with ratios clipped to the range from 0.8 to 1.28, DAPO's token-level mean, dynamic sampling and overlong penalty,
and without a KL term. Each token has a weight from 1 to 1.2 (for 0.8 to 1.2: ``--set loss.fipo.below=0.2``); a token
with a negative advantage and a ratio above 10 has a weight of at most 1. These are the values of the authors' script
for 32B parameters. The groups of a rollout are divided into eight optimizer steps; in a single step all weights would
be 1.
"""

from ..base import TRAINERS, Recipe

FIPO = Recipe(
    name="fipo",
    summary="FIPO: each token is weighted by the change of the policy on the tokens after it",
    paper="arXiv 2603.19835",
    source="recipe/fipo/run_fipo_qwen2.5_32b.sh of the authors' code, in its copy vukrosic/FIPO@17e630a",
    checked="2026-11-24",
    reward=("return", "overlong"),
    selector="all:reject_equal=true,equal=correct",
    loss=("fipo:below=0,safety=10",),
    defaults={"rollout": {"refill": 9}, "optim": {"minibatches": 8}},
)

TRAINERS.register("fipo", FIPO)
