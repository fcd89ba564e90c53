"""``grpo_passk``: trains for the best reward of a group (arXiv 2503.19595; verl's ``grpo_passk``).

Only the best episode of a group has an advantage: its reward minus the second-best reward. ``--set advantage.k=4`` uses
the best of 4 episodes instead of the group's best, and ``--set advantage.normalize=true`` divides by the group's
deviation, as verl does.
"""

from ..base import TRAINERS, Recipe

GRPO_PASSK = Recipe(
    name="grpo_passk",
    summary="The gradient of the best reward among the episodes of a group: pass@k instead of pass@1",
    paper="arXiv 2503.19595",
    source="verl-project/verl@1dda039b9, verl/trainer/ppo/core_algos.py",
    checked="2026-11-24",
    advantage="pass_at_k",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("grpo_passk", GRPO_PASSK)
