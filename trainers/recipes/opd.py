"""``opd``: on-policy distillation, without a reward in the loss (MiniLLM, arXiv 2306.08543; Tinker; prime-rl).

The policy plays, and every token that it wrote is drawn to what the teacher would have written there. One episode of a
problem is enough. Name the teacher, whose tokenizer must be the policy's: ``model.teacher=FOLDER``.
"""

from ..base import TRAINERS, Recipe

OPD = Recipe(
    name="opd",
    summary="OPD: a teacher's signal at every token that the policy drew, without a reward",
    paper="arXiv 2306.08543",
    selector="all",
    advantage="reinforce:baseline=none",
    loss=("opd",),
)

TRAINERS.register("opd", OPD)
