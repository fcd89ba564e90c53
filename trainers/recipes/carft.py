"""``carft``: GRPO with a term that moves the embeddings of right answers together (CARFT, arXiv 2508.15868).

The embedding of an answer comes from the model's last layer. If a group has an expert's answer (``Episode.source``),
the other right answers are moved towards that answer. The paper trains with a critic and computes embeddings with an
extra head; here, its contrastive term is combined with group advantages.
"""

from ..base import TRAINERS, Recipe

CARFT = Recipe(
    name="carft",
    summary="CARFT: GRPO with a contrastive term on the embeddings of right and wrong answers",
    paper="arXiv 2508.15868",
    checked="Not checked: the contrastive term is not in the authors' repository (WNQzhu/CARFT@e669155), and only "
    "the abstract could be read.",
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2", "carft"),
)

TRAINERS.register("carft", CARFT)
