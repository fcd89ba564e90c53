"""Draws what ``scheduler_sim.py`` found: makespans by stage, and how the episodes of one stage come in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler_sim import Outcome

COLORS = {
    "lock-step": "#9a9a9a",
    "static": "#d98c3f",
    "least_requests": "#c9b458",
    "kv_aware": "#2f6db3",
    "known": "#3c9a5f",
}


def draw(table: Mapping[str, Mapping[str, Outcome | float]], path: Path) -> None:
    """Write the picture.

    Args:
        table: For each stage what each policy came to.
        path: Where to write it, as PNG.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=(3, 2), layout="constrained")
    width = 0.8 / len(COLORS)
    for at, (policy, color) in enumerate(COLORS.items()):
        places = [stage + (at - (len(COLORS) - 1) / 2) * width for stage in range(len(table))]
        seconds = [_outcome(found[policy]).makespan for found in table.values()]
        bars = left.bar(places, seconds, width * 0.92, color=color, label=policy)
        lost = [_outcome(found[policy]).idle for found in table.values()]
        left.bar_label(bars, [f"{share:.0%}" for share in lost], fontsize=6, padding=1)
    for stage, found in enumerate(table.values()):
        left.hlines(_number(found["bound"]), stage - 0.44, stage + 0.44, color="black", linewidth=1)
    left.plot([], [], color="black", linewidth=1, label="no schedule beats this")
    left.set_xticks(range(len(table)), list(table))
    left.set_xlabel("mean length of a response, of the most it may have")
    left.set_ylabel("seconds for one step's episodes")
    left.set_title("Makespan; on the bars the engines' idle share", fontsize=10)
    left.legend(fontsize=7, frameon=False)

    stage = "4K of 8K" if "4K of 8K" in table else next(iter(table))
    for policy, color in COLORS.items():
        finished = _outcome(table[stage][policy]).finished
        shown = finished[:: max(1, len(finished) // 300)] + finished[-1:]
        share = [(at + 1) / len(shown) for at in range(len(shown))]
        right.plot(shown, share, color=color, label=policy)
    right.set_xlabel("seconds")
    right.set_ylabel("share of the episodes that have ended")
    right.set_title(f"How the episodes of {stage} come in", fontsize=10)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _outcome(found: Outcome | float) -> Outcome:
    assert not isinstance(found, float)
    return found


def _number(found: Outcome | float) -> float:
    assert isinstance(found, float)
    return found
