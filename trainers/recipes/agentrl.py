"""``agentrl``: samples some turns from older weights, and normalizes advantages per task (arXiv 2510.04206).

The ratio of a token uses the log-probability under the weights that sampled it, old or new. ``--set
parts.rollout.stale=mask`` excludes turns of older weights from the loss. The reward of an episode that does not end by
itself, for example because it reaches a limit, is reduced by 0.2. Use this recipe for mixtures of environments with
several turns. For the paper's asynchronous rollouts, use servers and ``rollout.max_staleness``. The paper states
neither the clip range nor the share of turns from older weights: both are this package's choices.
"""

from ..base import TRAINERS, Recipe

AGENTRL = Recipe(
    name="agentrl",
    summary="AgentRL: some turns are sampled from older weights, and advantages are normalized per task",
    paper="arXiv 2510.04206",
    source="arXiv 2510.04206, sections 3.1 and 3.2, equation 1, and appendix E, as quoted in a public course on RL; "
    "the released code, THUDM/AgentRL, could not be read on 2026-11-30",
    checked="2026-11-28",
    rollout="cross_policy",
    reward=("return", "unfinished"),
    advantage="task_norm",
    loss=("ppo_clip:low=0.2,high=0.2,anchor=sampled",),
    defaults={"rollout": {"group_size": 8, "temperature": 0.8}},
)

TRAINERS.register("agentrl", AGENTRL)
