"""``clip_delta``: adds bounded scores of steps to the outcome, so that repetition earns nothing (arXiv 2410.15115).

From "On Designing Effective RL Reward at Training Time for LLM Reasoning". The reward is 1 for a right answer. The
scores of the steps are clipped, and then replaced by their differences. The sum of the scores of a turn and all later
turns is added to the advantage of the turn. In the paper, a process reward model computes the scores
(``--set reward.process.of=./mine.py:scores``); here, the default score is the share of a turn's calls that succeed. The
paper trains with PPO and a critic; here, episodes are compared within their group. ``--set reward.process.bound=clip``
(or ``delta``) applies only one of the bounds. Groups with equal rewards are kept, since their steps may differ.
"""

from ..base import TRAINERS, Recipe

CLIP_DELTA = Recipe(
    name="clip_delta",
    summary="Clip and Delta: bounded scores of the steps in addition to the outcome; repeated steps earn nothing",
    paper="arXiv 2410.15115",
    source="the abstract of arXiv 2410.15115, and its reviews on OpenReview: both bounds, and the separate "
    "reward of steps; none of these texts states the weight of the steps or eta, and no released code was found "
    "on 2026-11-30",
    checked="2026-11-28",
    reward=("outcome", "process:bound=both,credit=turns"),
    loss=("ppo_clip:low=0.2,high=0.2",),
)

TRAINERS.register("clip_delta", CLIP_DELTA)
