"""``echo``: GRPO with a cross-entropy term on the results of tool calls (ECHO, arXiv 2605.24517).

Every rollout contains results of tool calls, so groups with equal rewards, which have no gradient in GRPO, are kept.
The policy loss and the cross-entropy are means over each episode, the weight of the cross-entropy is 0.05, and there is
no KL term. After supervised training, the paper uses the weight 0.02; according to the paper, weights of 0.1 or more
degrade the policy. The paper does not count warnings about the format of a call as results of tool calls; this recipe
does. ``--set loss.echo.tools=false`` also trains on the observations of games and puzzles.
"""

from ..base import TRAINERS, Recipe

ECHO = Recipe(
    name="echo",
    summary="ECHO: GRPO that also trains the policy to predict the answers of tools",
    paper="arXiv 2605.24517",
    source="arXiv 2605.24517, sections 2 to 4 and appendix B; the released code, microsoft/echo-rl, could not be read "
    "on 2026-11-30; according to public notes on its commit f4c3c7e, the term is a mean over the observations of each "
    "episode, the weight 0.05, and the clip 0.2 on both sides",
    checked="2026-11-30",
    loss=("ppo_clip:low=0.2,high=0.28", "echo:coef=0.05"),
    aggregation="seq_mean",
    defaults={"rollout": {"group_size": 16, "temperature": 0.8, "problems_per_step": 16}},
)

TRAINERS.register("echo", ECHO)
