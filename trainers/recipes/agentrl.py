"""``agentrl``: turns of older weights among those of the newest, advantages normalized by task (arXiv 2510.04206).

The ratio of a token is to the log-probability with which it was drawn, by whichever weights; ``--set
parts.rollout.stale=mask`` trains on the newest alone. For mixtures of environments with several turns. Collecting ahead
(``rollout.max_staleness``) is the paper's asynchronous form, with servers.
"""

from ..base import TRAINERS, Recipe

AGENTRL = Recipe(
    name="agentrl",
    summary="AgentRL: turns of older weights among those of the newest, advantages normalized by task",
    paper="arXiv 2510.04206",
    rollout="cross_policy",
    advantage="task_norm",
    loss=("ppo_clip:low=0.2,high=0.2,anchor=sampled",),
)

TRAINERS.register("agentrl", AGENTRL)
