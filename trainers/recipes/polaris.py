"""``polaris``: GRPO that replaces groups without a difference by others of the batch (Polaris 2025).

hkunlp.github.io/blog/2025/Polaris: no KL term and no entropy bonus, clip-higher, a temperature that rises while the
policy sharpens (its values depend on the model: ``hook.temperature_schedule.start``), and a batch that is filled up
with copies of the groups that can teach. The lower bound of their share, 0.3, is SkyRL's.
"""

from ..base import TRAINERS, Recipe

POLARIS = Recipe(
    name="polaris",
    summary="Polaris: groups without a difference are replaced by copies of others, at a rising temperature",
    paper="Polaris 2025",
    selector="all:reject_equal=true",
    hook=("temperature_schedule",),
    defaults={"rollout": {"replace": 0.3}},
)

TRAINERS.register("polaris", POLARIS)
