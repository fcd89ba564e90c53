"""``polaris``: GRPO that replaces groups with equal rewards by copies of other groups (Polaris 2025).

hkunlp.github.io/blog/2025/Polaris: no KL term, no entropy bonus, and clip-higher. The temperature rises as the policy
becomes more certain; suitable values depend on the model (``hook.temperature_schedule.start``): 1.4 to 1.5 in three
stages for Qwen3-4B. If at least 0.3 of the batch's groups have unequal rewards, copies of these groups fill the batch
(the value 0.3 is SkyRL's).
"""

from ..base import TRAINERS, Recipe

POLARIS = Recipe(
    name="polaris",
    summary="Polaris: groups with equal rewards are replaced by copies of others, at a rising temperature",
    paper="Polaris 2025",
    source="ChenxinAn-fdu/POLARIS@9e4fda2, scripts/train/qwen3-4b and verl/verl/trainer/ppo/ray_trainer.py",
    checked="2026-11-24",
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.28",),
    hook=("temperature_schedule",),
    defaults={"rollout": {"replace": 0.3}},
)

TRAINERS.register("polaris", POLARIS)
