"""Made-up runs that show all that the viewer has, for its pictures."""

from __future__ import annotations

from pathlib import Path

from made_runs import MadeRun, write_training
from spelled_tokens import write_spelled


def write_runs(runs: Path, *, steps: int = 60) -> MadeRun:
    """Write two seeds of GRPO-RoC, the first with the tokens of its rows, and one of GRPO; return what they share.

    Args:
        runs: Their folder.
        steps: Optimizer steps of each.
    """
    every = max(1, steps // 6)
    made = MadeRun(
        steps=steps, problems=60, problems_per_step=4, size=8, refill=3, eval_every=every, checkpoint_every=2 * every
    )
    for seed in (0, 1):
        write_training(runs / f"roc-{seed}", made, seed=seed)
    write_spelled(runs / "roc-0")
    write_training(runs / "grpo-0", made, trainer="grpo", slips=(0.3, 0.28))
    return made
