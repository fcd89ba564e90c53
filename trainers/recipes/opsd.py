"""``opsd``: distillation from the initial policy with the answer in its prompt (Self-Distillation, arXiv 2601.18734).

The teacher is the run's initial model, as in the paper. The teacher's prompt is the user's message followed by
``model.teacher_prompt``. In ``model.teacher_prompt``, ``{answer}`` is replaced by the gold answer, and ``{solution}``
by the problem's solution if it has one. The signal of a token is bounded, since the two models differ most on stylistic
tokens. The paper clips the divergence over the whole vocabulary, but does not state the bound. The authors' script
trains LoRA adapters (rank 64) on the Jensen-Shannon divergence over the vocabulary, at temperature 1.1; with its option
``--use_tinker_loss``, it uses only sampled tokens, as this recipe does.
"""

from ..base import TRAINERS, Recipe

OPSD = Recipe(
    name="opsd",
    summary="OPSD: the policy is distilled from itself, with the answer in the teacher's prompt",
    paper="arXiv 2601.18734",
    source="siyan-zhao/OPSD@590ec26, scripts/run_opsd.sh and opsd_trainer.py",
    checked="2026-11-24",
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
