"""``polaris``: GRPO that replaces groups with equal rewards by copies of other groups (Polaris 2025).

hkunlp.github.io/blog/2025/Polaris: no KL term, no entropy bonus, and clip-higher. The temperature rises as the policy
becomes more certain; its values depend on the model (``hook.temperature_schedule.start``). The batch is filled with
copies of groups whose rewards differ. The minimum share of such groups, 0.3, is SkyRL's.
"""

from ..base import TRAINERS, Recipe

POLARIS = Recipe(
    name="polaris",
    summary="Polaris: groups with equal rewards are replaced by copies of others, at a rising temperature",
    paper="Polaris 2025",
    selector="all:reject_equal=true",
    hook=("temperature_schedule",),
    defaults={"rollout": {"replace": 0.3}},
)

TRAINERS.register("polaris", POLARIS)
