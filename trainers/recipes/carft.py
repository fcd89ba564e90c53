"""``carft``: GRPO with a term that moves the embeddings of right answers together (CARFT, arXiv 2508.15868).

The annotated chain of thought of a problem joins its group: the rollout ``external`` reads it from
``parts.rollout.file=TRACES`` or from ``Problem.meta["demonstration"]``. The embeddings of the policy's right answers
are moved towards the embedding of this chain or, without a chain, towards one another. As in the authors' code, the
chain does not change any advantage, the loss is the mean over each answer, a KL penalty has the weight 0.05, and each
rollout is used for two passes. The code trains with a critic, adds the KL penalty to the reward, takes embeddings from
an extra head, and takes all answers of the batch as negatives. The recipe uses group advantages, a KL term (on the
chain too), embeddings from the last layer, and the wrong answers of the group as negatives. The code's configurations
give the contrastive term weights from 0 to 1.
"""

from ..base import TRAINERS, Recipe

CARFT = Recipe(
    name="carft",
    summary="CARFT: GRPO with a contrastive term on the embeddings of right and wrong answers",
    paper="arXiv 2508.15868",
    source="WNQzhu/CARFT@e669155, code/vae/scripts/my_cl_trainer_v4.py (the version that its readme.org names for the "
    "paper's results) and my_cl_config.py",
    checked="2026-11-28",
    rollout="external:only_compared=true",
    loss=("ppo_clip:low=0.2,high=0.2", "kl:coef=0.05", "carft"),
    aggregation="seq_mean",
    defaults={"optim": {"updates_per_rollout": 2}},
)

TRAINERS.register("carft", CARFT)
