"""``agentmath``: a bonus for calling tools in right answers, and budgets that grow with what is cut off (AgentMath).

arXiv 2512.20745. R = correctness + [correct] min(0.1, 0.02 N) for N calls (the paper does not give the constants);
groups without a difference are replaced; budgets go from 48K tokens and 48 calls to 72K and 72, and 96K and 96, when
more than a tenth of the episodes are cut off. A turn of the policy counts as a call. The paper's rollouts also come in
segments, two to four of an episode, which is left out: here an episode is played whole. 8 episodes of 64 problems,
learning rate 1e-6.
"""

from ..base import TRAINERS, Recipe

AGENTMATH = Recipe(
    name="agentmath",
    summary="AgentMath: a bonus for tool calls in right answers, budgets that grow with what is cut off",
    paper="arXiv 2512.20745",
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
