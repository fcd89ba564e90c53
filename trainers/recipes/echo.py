"""``echo``: GRPO with a cross-entropy term on the answers of tools (ECHO, arXiv 2605.24517).

Every rollout contains answers of tools, so groups with equal rewards, which have no gradient in GRPO, are kept. The
weight of the cross-entropy is 0.1. ``--set loss.echo.tools=false`` also trains on the observations of games and
puzzles.
"""

from ..base import TRAINERS, Recipe

ECHO = Recipe(
    name="echo",
    summary="ECHO: GRPO that also trains the policy to predict the answers of tools",
    paper="arXiv 2605.24517",
    checked="Not checked: only the abstract could be read, and the authors' repository (microsoft/echo-rl) could not.",
    loss=("ppo_clip", "echo"),
)

TRAINERS.register("echo", ECHO)
