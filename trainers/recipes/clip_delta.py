"""``clip_delta``: adds bounded scores of the steps to the outcome, so that repetition earns nothing (arXiv 2410.15115).

From "On Designing Effective RL Reward at Training Time for LLM Reasoning". The reward is 1 for a right answer plus the
scores of its steps, which are first clipped and then replaced by their differences. In the paper, a process reward
model computes the scores (``--set reward.process.of=./mine.py:scores``); here, the default score is the share of a
turn's calls that succeed. The paper trains with PPO and a critic; here, episodes are compared within their group.
``--set reward.process.bound=clip`` (or ``delta``) applies only one of the bounds.
"""

from ..base import TRAINERS, Recipe

CLIP_DELTA = Recipe(
    name="clip_delta",
    summary="Clip and Delta: bounded scores of the steps in addition to the outcome; repeated steps earn nothing",
    paper="arXiv 2410.15115",
    checked="Not checked: the authors released no code, and only the abstract could be read.",
    reward=("outcome", "process:bound=both"),
    selector="all:reject_equal=true",
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("clip_delta", CLIP_DELTA)
