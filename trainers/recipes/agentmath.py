r"""``agentmath``: a bonus for tool calls in right answers, and budgets that grow when episodes are cut off (AgentMath).

arXiv 2512.20745. The reward is 1 plus $\min(0.1, 0.02 N)$ for a correct episode with $N$ calls; the paper does not give
these constants. A turn of the policy counts as a call. Groups with equal rewards are replaced. The budget starts at 48K
tokens and 48 calls; it grows to 72K and 72, and then to 96K and 96, whenever more than a tenth of the episodes are cut
off. A step has 64 problems with 8 episodes each; the learning rate is 1e-6. Not covered: the paper divides an episode
into two to four segments that are played in different steps; here, an episode is played in one step.
"""

from ..base import TRAINERS, Recipe

AGENTMATH = Recipe(
    name="agentmath",
    summary="AgentMath: a bonus for tool calls in right answers, and budgets that grow when episodes are cut off",
    paper="arXiv 2512.20745",
    source="arXiv 2512.20745; no released code was found on 2026-11-30",
    checked="2026-11-24",
    reward=("return", "tool_use"),
    selector="all:reject_equal=true",
    hook=("length_stages:tokens=1+1.5+2,turns=48+72+96,when_cut=0.1",),
    defaults={
        "rollout": {
            "problems_per_step": 64,
            "group_size": 8,
            "refill": 9,
            "max_episode_tokens": 49152,
            "env_options": {"max_turns": 48},
        },
        "optim": {"learning_rate": 1e-6},
    },
)

TRAINERS.register("agentmath", AGENTMATH)
