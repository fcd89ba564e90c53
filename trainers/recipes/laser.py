"""``laser``: a bonus for right answers within a length that depends on the difficulty (LASER-D, arXiv 2505.15612).

``--set reward.laser.mode=fixed`` is LASER, with one length for all problems. ``mode=de`` is LASER-DE, which does not
penalize long wrong answers. Temperature 0.6, clipping at 0.2 and 0.28, a KL term with the weight 1e-3, an entropy bonus
of 0.001, and two optimizer steps per rollout.
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
