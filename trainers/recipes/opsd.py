"""``opsd``: the policy is its own teacher, which is told the answer (On-Policy Self-Distillation, arXiv 2601.18734).

The teacher is the model that the run begins with, as in the paper; it reads the user's message and then
``model.teacher_prompt``. Where problems bring a solution, ``{solution}`` says more than ``{answer}``. The signal of a
token is bounded, since tokens of style part most between the two; the paper clips the divergence over the whole
vocabulary, and leaves the number open.
"""

from ..base import TRAINERS, Recipe

OPSD = Recipe(
    name="opsd",
    summary="OPSD: the policy distils from itself, which is told the answer",
    paper="arXiv 2601.18734",
    selector="all",
    advantage="reinforce:baseline=none",
    loss=("opd:bound=2",),
    defaults={
        "model": {
            "teacher": "self",
            "teacher_prompt": "\n\nThe answer is known to be {answer}. Find your own way to it.",
        }
    },
)

TRAINERS.register("opsd", OPSD)
