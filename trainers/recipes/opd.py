"""``opd``: on-policy distillation from a teacher, without a reward (MiniLLM, arXiv 2306.08543; Tinker; prime-rl).

The policy plays the episodes, and the loss moves each of their tokens towards the teacher's distribution at that
position. One episode per problem is enough. Set the teacher with ``model.teacher=FOLDER``; it must have the policy's
tokenizer.
"""

from ..base import TRAINERS, Recipe

OPD = Recipe(
    name="opd",
    summary="OPD: distillation from a teacher at every token that the policy sampled, without a reward",
    paper="arXiv 2306.08543",
    source="PrimeIntellect-ai/prime-rl@559b44772, src/prime_rl/trainer/rl/loss.py; "
    "thinking-machines-lab/tinker-cookbook@9dfcc3a2, tinker_cookbook/distillation/train_on_policy.py",
    checked="2026-11-24",
    selector="all",
    advantage="reinforce:baseline=none",
    loss=("opd",),
)

TRAINERS.register("opd", OPD)
