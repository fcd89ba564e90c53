"""``agentmath``: a bonus for calling tools in right answers, and budgets that grow with what is cut off (AgentMath).

arXiv 2512.20745. R = correctness + [correct] min(0.1, 0.02 N) for N calls (the paper does not give the constants);
groups without a difference are replaced; budgets go from 48K tokens to 72K and 96K when more than a tenth of the
episodes are cut off, and in environments with ``max_turns`` so may the calls (``--set
hook.length_stages.turns=48+72+96``). 8 episodes of 64 problems, learning rate 1e-6.
"""

from __future__ import annotations

from ..base import TRAINERS, Recipe

AGENTMATH = Recipe(
    name="agentmath",
    summary="AgentMath: a bonus for tool calls in right answers, budgets that grow with what is cut off",
    paper="arXiv 2512.20745",
    reward=("return", "tool_use:gate=correct"),
    selector="all:reject_equal=true",
    hook=("length_stages:tokens=1+1.5+2,when_cut=0.1",),
    defaults={
        "rollout": {"problems_per_step": 64, "group_size": 8, "refill": 9, "max_episode_tokens": 49152},
        "optim": {"learning_rate": 1e-6},
    },
)

TRAINERS.register("agentmath", AGENTMATH)
