"""``carft``: GRPO, and right answers of a group drawn together in the model's last layer (CARFT, arXiv 2508.15868).

Where a group has an expert's answer (``Episode.source``), the right ones are drawn to that one. The paper trains with a
critic, and has a head of its own for the embeddings; this is the contrastive term together with a group advantage.
"""

from ..base import TRAINERS, Recipe

CARFT = Recipe(
    name="carft",
    summary="CARFT: GRPO with a contrastive term that tells right chains of thought from wrong ones",
    paper="arXiv 2508.15868",
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2", "carft"),
)

TRAINERS.register("carft", CARFT)
