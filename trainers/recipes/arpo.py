"""``arpo``: branches episodes after tool calls that leave the policy uncertain (ARPO, arXiv 2507.19849).

Each problem has 16 episodes, of which 8 are played from the start. A rollout has 128 problems in 8 optimizer steps;
there is no KL term. The reward is Tool-Star's: -1 for a broken format, else the score of the answer, plus 0.1 if this
score is positive and two different tools were used. Tokens that branches share are trained on with the advantage of
each branch (soft attribution); ``--set advantage.attribution=hard`` uses the mean of these advantages. The paper
branches if the entropy rises after a tool's answer; the released code branches at random, with a probability that
depends on the entropy before that answer: ``--set parts.rollout=entropy_branching:decide=draw,of=before``.
"""

from ..base import TRAINERS, Recipe

ARPO = Recipe(
    name="arpo",
    summary="ARPO: episodes branch off others after tool calls that leave the policy uncertain",
    paper="arXiv 2507.19849",
    source="RUC-NLPIR/ARPO@a95cd08, ARPO/scripts/ARPO_7B_Reasoning_1node.sh",
    checked="2026-11-24",
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
