"""``kdrl``: GRPO with distillation of wrong answers from a teacher (KDRL, arXiv 2506.02208).

The weight of the distillation falls from 5e-3 to 1e-3, by 5e-5 per step. Set the teacher with ``model.teacher=FOLDER``;
it must have the policy's tokenizer.
"""

from ..base import TRAINERS, Recipe

KDRL = Recipe(
    name="kdrl",
    summary="KDRL: GRPO with wrong answers distilled from a teacher, on the policy's own tokens",
    paper="arXiv 2506.02208",
    # A group of wrong answers alone learns nothing from its rewards, and from the teacher it does.
    selector="all",
    loss=("ppo_clip:low=0.2,high=0.2", "kdrl"),
    hook=("kl_schedule:term=kdrl",),
)

TRAINERS.register("kdrl", KDRL)
