"""``laser``: a bonus for right answers within a length that depends on the difficulty (LASER-D, arXiv 2505.15612).

``--set reward.laser.mode=fixed`` is LASER, with one length for all problems. ``mode=de`` is LASER-DE, which does not
penalize long wrong answers. The temperature is 0.6, ratios are clipped to the range from 0.8 to 1.28, the KL term has
the weight 1e-3, the entropy bonus is 0.001, and a rollout has two optimizer steps.
"""

from ..base import TRAINERS, Recipe

LASER = Recipe(
    name="laser",
    summary="LASER-D: a bonus for right answers that are short for their difficulty",
    paper="arXiv 2505.15612",
    source="hkust-nlp/Laser@c9e7c4e, scripts/training/laser-d-1.5b/laser-d-1.5b-l2048.sh",
    checked="2026-11-24",
    reward=("laser:mode=d",),
    loss=("ppo_clip:low=0.2,high=0.28", "kl:coef=1e-3", "entropy:coef=0.001"),
    defaults={"rollout": {"temperature": 0.6}, "optim": {"minibatches": 2}},
)

TRAINERS.register("laser", LASER)
