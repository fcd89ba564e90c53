"""``echo``: GRPO, and cross-entropy on what the tools answered (ECHO, arXiv 2605.24517).

Answers of tools are in every rollout, so groups whose rewards are all equal, which teach GRPO nothing, are kept. The
weight of the cross-entropy is 0.1; ``--set loss.echo.tools=false`` learns what games and puzzles show too.
"""

from ..base import TRAINERS, Recipe

ECHO = Recipe(
    name="echo",
    summary="ECHO: GRPO that also learns to foresee what its tools answer",
    paper="arXiv 2605.24517",
    loss=("ppo_clip", "echo"),
)

TRAINERS.register("echo", ECHO)
