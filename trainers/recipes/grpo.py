"""``grpo``: group-relative policy optimisation (arXiv 2402.03300) on every episode that was played.

Clipping, token-level mean and optimizer are those of ``grpo_roc``, so that the two differ only in the selection. Groups
whose rewards are all equal are left out of the loss, as in ``grpo_roc``; ``selector_options={"reject_equal": False}``
keeps their tokens in the mean.
"""

from __future__ import annotations

from ..base import TRAINERS, Recipe

GRPO = Recipe(
    name="grpo",
    summary="GRPO on every episode: play G, keep G (arXiv 2402.03300)",
    selector="all",
    selector_options={"reject_equal": True},
)

TRAINERS.register("grpo", GRPO)
