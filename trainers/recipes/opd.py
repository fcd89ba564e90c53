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
    selector="all",
    advantage="reinforce:baseline=none",
    loss=("opd",),
)

TRAINERS.register("opd", OPD)
