"""``clip_delta``: bounded step scores in addition to the outcome: repetition earns nothing (arXiv 2410.15115).

On Designing Effective RL Reward at Training Time for LLM Reasoning: 1 for a right answer, and the scores of its steps,
clipped first and then as differences. The paper's scores are a process reward model's (``--set
reward.process.of=./mine.py:scores``), here by default the share of a turn's calls that succeed; it trains by PPO
with a critic, here groups are compared. ``--set reward.process.bound=clip`` or ``delta`` is one bound alone.
"""

from ..base import TRAINERS, Recipe

CLIP_DELTA = Recipe(
    name="clip_delta",
    summary="Clip and Delta: scores of steps in addition to the outcome; repeated steps earn nothing",
    paper="arXiv 2410.15115",
    reward=("outcome", "process:bound=both"),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("clip_delta", CLIP_DELTA)
