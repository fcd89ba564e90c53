"""Checks of evaluations: settings that differ from training, and falling pass rates."""

from __future__ import annotations

import math
from math import inf
from operator import itemgetter
from statistics import fmean

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord

_APART = 0.01
_OF_HIGH, _OF_LOW = ("all_wrong", "cut_by_tokens"), ("episodes_identical", "few_signals")
"""Names of the checks whose faults usually result from a training temperature above 1, and from one below 1."""
_FALL, _ERRORS = 0.05, 3.0
_POOLED = 3
"""Largest number of consecutive evaluations whose mean is compared with the last evaluation: a mean has a smaller
standard error than a single evaluation."""


def _temperature(run: RunRecord) -> Evidence | None:
    train, held_out = run.option("rollout.temperature", 1.0), run.option("eval.temperature")
    if held_out is None or abs(float(held_out) - float(train)) <= _APART:
        return None
    return Evidence(
        since=run.evaluations[0].number,
        until=None,
        says=f"The held-out problems are played at temperature {float(held_out):g} and the training problems at "
        f"{float(train):g}, so their pass rates cannot be compared.",
        figures={"rollout.temperature": float(train), "eval.temperature": float(held_out)},
        episodes=tuple(one.key for one in run.evaluations[-1].episodes[:3]),
        effects=_OF_HIGH if float(train) > 1 + _APART else _OF_LOW if float(train) < 1 - _APART else (),
    )


def _falls(run: RunRecord) -> Evidence | None:
    known = [one for one in run.evaluations if math.isfinite(one.figures.get("pass_rate", math.nan))]
    if len(known) < 2:
        return None
    last = known[-1]
    rate, error = last.figures["pass_rate"], last.figures.get("pass_rate_se", 0.0)
    falls = []
    for number in range(1, _POOLED + 1):
        for at in range(len(known) - number):
            earlier = known[at : at + number]
            level = fmean(one.figures["pass_rate"] for one in earlier)
            spread = (sum(one.figures.get("pass_rate_se", 0.0) ** 2 for one in earlier) / number**2 + error**2) ** 0.5
            falls.append(((level - rate) / spread if spread else inf, level, earlier))
    # The highest of several levels is partly high by chance, so the fall must exceed three standard errors, not two.
    falls = [fall for fall in falls if fall[0] > _ERRORS and fall[1] - rate > _FALL]
    if not falls:
        return None
    best = max(max(falls, key=itemgetter(0))[2], key=lambda one: one.figures["pass_rate"])
    return Evidence(
        since=next(one.number for one in known if one.number > best.number),
        until=None,
        says=f"The held-out pass rate fell from {best.figures['pass_rate']:.3f} (step {best.number}) to "
        f"{last.figures['pass_rate']:.3f} (step {last.number}).",
        figures={"held-out pass rate": last.figures["pass_rate"], "best": best.figures["pass_rate"]},
        episodes=tuple(one.key for one in last.episodes if not one.correct)[:3],
    )


register(
    RunCheck(
        name="evaluation_temperature",
        title="Evaluation and training have different temperatures",
        looks_at="`rollout.temperature` and `eval.temperature`",
        rule="the two temperatures differ by more than 0.01",
        severity="note",
        cause="An evaluation that is configured for greedy decoding.",
        change=("--set eval.temperature=null",),
        otherwise="The difference is intended: then compare evaluations only with one another.",
        needs=("evaluations", "option:rollout"),
        look=_temperature,
    ),
    RunCheck(
        name="held_out_falls",
        title="The held-out pass rate falls",
        looks_at="the evaluations with their standard errors",
        rule="the pass rate of the last evaluation is below the pass rate of an earlier evaluation, or below the mean "
        "of 2 or 3 consecutive earlier ones, by more than 5 points and by more than 3 standard errors: the best of "
        "several evaluations is partly high by chance, so 2 standard errors are too few",
        severity="error",
        cause="A collapse, or a reward for something other than right answers.",
        change=(
            "rstar2 export RUN --which best --out model",
            "--set hook.collapse.action=stop",
            "--set optim.learning_rate=LOWER",
        ),
        otherwise="Few held-out episodes: 128 give a standard error of 4 points.",
        needs=("evaluations",),
        look=_falls,
    ),
)
