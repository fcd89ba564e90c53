"""``kdrl``: GRPO with distillation of wrong answers from a teacher (KDRL, arXiv 2506.02208).

The weight of the distillation falls from 5e-3 to 1e-3, by 5e-5 per step. Set the teacher with ``model.teacher=FOLDER``;
it must have the policy's tokenizer.
"""

from ..base import TRAINERS, Recipe

KDRL = Recipe(
    name="kdrl",
    summary="KDRL: GRPO, plus distillation from a teacher on the tokens of wrong answers",
    paper="arXiv 2506.02208",
    source="arXiv 2506.02208, as quoted in the review of the paper at www.themoonlight.io; no released code was found "
    "on 2026-11-30; a public reimplementation also uses k2, and lowers the weight by 5e-5 a step, over 80 steps",
    checked="2026-11-30",
    # A group with only wrong answers has no gradient from its rewards, but one from the teacher.
    selector="all",
    loss=("ppo_clip:low=0.2,high=0.2", "kdrl"),
    hook=("kl_schedule:term=kdrl",),
)

TRAINERS.register("kdrl", KDRL)
