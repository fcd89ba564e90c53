"""``agentrl``: samples some turns from older weights, and normalizes advantages per task (arXiv 2510.04206).

The ratio of a token uses the log-probability under the weights that sampled it, old or new. ``--set
parts.rollout.stale=mask`` excludes turns of older weights from the loss. Use it for mixtures of environments with
several turns. The paper's asynchronous rollouts are ``rollout.max_staleness`` with servers.
"""

from ..base import TRAINERS, Recipe

AGENTRL = Recipe(
    name="agentrl",
    summary="AgentRL: some turns are sampled from older weights, and advantages are normalized per task",
    paper="arXiv 2510.04206",
    checked="Not checked: only the abstract could be read, and the authors' repository (THUDM/AgentRL) could not.",
    rollout="cross_policy",
    advantage="task_norm",
    loss=("ppo_clip:low=0.2,high=0.2,anchor=sampled",),
)

TRAINERS.register("agentrl", AGENTRL)
