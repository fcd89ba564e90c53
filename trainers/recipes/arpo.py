"""``arpo``: episodes that branch off others after tool calls, where the policy was undecided (ARPO, arXiv 2507.19849).

16 episodes a problem, of which 8 are played from the start; 128 problems a step in 8 optimizer steps; no KL term. The
reward is Tool-Star's: -1 for a broken format, else the score of the answer, and 0.1 more with two different tools. What
branches share keeps the advantage of each (soft attribution); ``--set advantage.attribution=hard`` takes their mean.
The paper branches where the entropy after a tool's answer has risen; the released code draws with the entropy before
it, ``--set parts.rollout=entropy_branching:decide=draw,of=before``.
"""

from ..base import TRAINERS, Recipe

ARPO = Recipe(
    name="arpo",
    summary="ARPO: episodes that branch off others after tool calls, where the policy was undecided",
    paper="arXiv 2507.19849",
    rollout="entropy_branching",
    reward=("tool_hierarchy",),
    advantage="arpo",
    loss=("ppo_clip:low=0.2,high=0.2",),
    defaults={
        "rollout": {"problems_per_step": 128, "group_size": 16},
        "optim": {"minibatches": 8, "learning_rate": 1e-6},
    },
)

TRAINERS.register("arpo", ARPO)
