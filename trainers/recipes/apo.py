"""``apo``: treats right and wrong answers asymmetrically (APO, arXiv 2506.21655).

For right answers to hard problems, the KL term is weaker (``apo_dads``). Wrong answers that are longer than the right
ones of their group get a larger negative advantage (``apo_stcr``). Ratios are clipped to the range from 0.8 to 1.2. The
weight of the KL term is 1e-3; ``--set loss.apo_dads.coef=0.04`` sets GRPO's weight. A rollout has 16 optimizer steps,
as in the authors' code; groups with equal rewards are kept, since the KL term acts on them. The authors average the KL
term over each answer first, and the clipped surrogate over all tokens; here, both are means over tokens.
"""

from ..base import TRAINERS, Recipe

APO = Recipe(
    name="apo",
    summary="APO: a weaker KL term for right answers to hard problems, a larger penalty for long wrong answers",
    paper="arXiv 2506.21655",
    source="Indolent-Kawhi/View-R1@093f2d8, examples/scripts/train_grpo.sh, openrlhf/trainer/ray/ppo_actor.py and "
    "openrlhf/trainer/ppo_utils/experience_maker.py",
    checked="2026-11-24",
    advantage="apo_stcr",
    loss=("ppo_clip:low=0.2,high=0.2", "apo_dads"),
    defaults={"optim": {"minibatches": 16}},
)

TRAINERS.register("apo", APO)
