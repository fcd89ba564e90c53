"""A run of every selector, in which each leaves out episodes for reasons of its own, with rounds of refill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from made_episodes import Skill
from made_runs import MadeRun, MadeTraining, write_training


@dataclass(frozen=True)
class Chosen:
    """How a selector is used.

    Attributes:
        reasons: Why episodes do not train, among others.
        weighed: Names of the numbers by which it chooses, all of them.
        options: Its options.
    """

    reasons: frozenset[str]
    weighed: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)


_ROC = frozenset({"penalty", "tool_errors", "format", "quota", "chance"})
SELECTED = {
    "roc": Chosen(frozenset({"penalty", "draw", "equal", "unavailable"}), _ROC),
    "all": Chosen(frozenset({"quota", "equal"}), options={"reject_equal": True}),
    "balanced_band": Chosen(
        frozenset({"band", "penalty"}), _ROC | {"pass_rate", "low", "high"}, {"of": "roc", "low": 0.4, "high": 0.6}
    ),
    "deviation": Chosen(
        frozenset({"deviation", "quota"}),
        frozenset({"deviation", "threshold"}),
        {"beta": 1.0, "begin": 2, "filter_from": 2},
    ),
    "minimum_group": Chosen(frozenset({"few", "quota"}), frozenset({"counted", "least"}), {"least": 8}),
    "quality_ties": Chosen(frozenset({"penalty", "draw", "equal"}), _ROC),
}
"""Every selector."""


class _Shaky(MadeRun):
    """Of whose episodes the infrastructure fails some."""

    def skill(self, step: int) -> Skill:
        return replace(super().skill(step), broken=0.08)


def write_selected(folder: Path, name: str) -> MadeTraining:
    """Write a run that a selector chooses for.

    Args:
        folder: Its folder.
        name: The selector.
    """
    options = {"parts": {"selector": {"name": name, **SELECTED[name].options}}}
    made = _Shaky(steps=4, problems=24, size=4, problems_per_step=3, refill=5, eval_every=0, slope=0.5, options=options)
    return write_training(folder, made)
