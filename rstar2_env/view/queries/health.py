"""The health strip of a run's page: for a few metrics, the last value, the curve, and the findings of the diagnosis.

The state of a metric follows from the checks of ``rstar2_env.diagnosis`` that use it; the viewer defines no thresholds.
Only recorded metrics are read; ``rstar2 diagnose`` also runs the checks that need episodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rstar2_env.diagnosis.base import CHECKS, SEVERITIES
from rstar2_env.diagnosis.checks.signal import signal_shares
from rstar2_env.diagnosis.examination import examine
from rstar2_env.diagnosis.record import FigurePoint, RunRecord, StepData
from rstar2_env.diagnosis.result import Diagnosis

HealthState: TypeAlias = Literal["ok", "watch", "problem", "unknown"]
"""State of a metric. ``ok``: no check reports anything now; ``watch``: a check reports a warning or a note;
``problem``: a check reports an error; ``unknown``: every check lacks data."""
_STATES: Mapping[str, HealthState] = dict(zip(SEVERITIES, ("problem", "watch", "watch"), strict=True))
_MOST_POINTS = 60
_HELD_OUT = "eval/"


@dataclass(frozen=True, slots=True)
class HealthSign:
    """Definition of a metric in the health strip at the top of a run's page.

    Attributes:
        label: Label of the metric.
        figure: Name of the metric.
        percent: Whether the metric is a share, shown in percent.
        checks: Names of the diagnosis checks that use the metric.
        points: Function that computes the metric's values with their steps; ``None`` uses the recorded values.
    """

    label: str
    figure: str
    percent: bool
    checks: tuple[str, ...]
    points: Callable[[RunRecord], list[FigurePoint]] | None = None


def _held_out(run: RunRecord) -> list[FigurePoint]:
    return [
        (one.number, value) for one in run.evaluations if math.isfinite(value := one.figures.get("pass_rate", math.nan))
    ]


def _without_signal(run: RunRecord) -> list[FigurePoint]:
    return [
        (step, 1.0 - signal / total)
        for step, reasons, signal in signal_shares(run)
        if (total := signal + sum(reasons.values())) > 0
    ]


SIGNS = (
    HealthSign("Held-out success", "eval/pass_rate", True, ("held_out_falls",), _held_out),
    HealthSign(
        "Groups without a signal",
        "groups/signal",
        True,
        ("all_wrong", "all_right", "all_rejected", "all_unavailable", "few_signals"),
        _without_signal,
    ),
    HealthSign("Entropy", "policy/entropy", False, ("entropy_collapsed", "entropy_exploded")),
    HealthSign("Tokens per episode", "rollout/tokens", False, ("lengths_explode", "lengths_collapse")),
    HealthSign("KL to the reference", "kl", False, ("kl_runs_away",)),
    HealthSign("Engine against trainer", "mismatch/logp_difference", False, ("engine_differs", "weights_stale")),
    HealthSign("Gradient norm", "grad_norm", False, ("gradient_nan", "gradient_zero", "gradient_clipped")),
    HealthSign("Failed calls", "rollout/tool_error_share", True, ("tool_fails",)),
)
"""The metrics in the health strip, in order; metrics that a run does not record are not shown."""


def health_of(
    kind: str, config: Mapping[str, Any], metrics: Mapping[int, Mapping[str, float | None]]
) -> list[dict[str, Any]]:
    """Return the metrics in the health strip for a training run or a cold start; empty for other runs.

    Args:
        kind: Kind of the run.
        config: Options of the run.
        metrics: Metrics of the run by step, from ``RunFacts.metrics``.

    Returns:
        For each metric: ``label``, ``figure``, ``percent``, ``last`` and ``step`` (the last value and its step),
        ``values`` (at most 60 evenly chosen values, including the last), ``state`` (see ``HealthState``) and
        ``says`` (sentences of the findings that hold now).
    """
    if kind not in ("training", "sft"):
        return []
    record = _record(kind, config, metrics)
    found = examine(record, checks=[CHECKS.get(name) for sign in SIGNS for name in sign.checks])
    signs = []
    for sign in SIGNS:
        points = sign.points(record) if sign.points is not None else record.series(sign.figure)
        if not points:
            continue
        state, says = _judged(sign, found)
        stride = math.ceil(len(points) / _MOST_POINTS)
        signs.append(
            {
                "label": sign.label,
                "figure": sign.figure,
                "percent": sign.percent,
                "last": points[-1][1],
                "step": points[-1][0],
                "values": [value for _, value in points[::-1][::stride][::-1]],
                "state": state,
                "says": says,
            }
        )
    return signs


def _record(kind: str, config: Mapping[str, Any], metrics: Mapping[int, Mapping[str, float | None]]) -> RunRecord:
    record = RunRecord("the run", "sft" if kind == "sft" else "training", config)
    for step, figures in metrics.items():
        own: dict[str, float] = {}
        held_out: dict[str, float] = {}
        for name, value in figures.items():
            known = math.nan if value is None else value
            if name.startswith(_HELD_OUT):
                held_out[name.removeprefix(_HELD_OUT)] = known
            else:
                own[name] = known
        if held_out:
            record.evaluations.append(StepData(step, held_out))
        if own:
            record.add(StepData(step, own))
    return record


def _judged(sign: HealthSign, found: Diagnosis) -> tuple[HealthState, list[str]]:
    own = [finding for finding in found if finding.check in sign.checks and finding.until is None]
    if own:
        worst = min(own, key=lambda finding: SEVERITIES.index(finding.severity))
        return _STATES[worst.severity], [f"{finding.title}. {finding.says}" for finding in own]
    decided = {*found.silent, *found.names}
    return ("ok" if decided.intersection(sign.checks) else "unknown"), []
