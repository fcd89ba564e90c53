"""Checks for a learning rate that is too high (updates break the policy) or too low (nothing is learned)."""

from __future__ import annotations

from statistics import median

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.spells import Spell, spell

_HIGH = 1e-2
"""Largest healthy change of the weights per step, relative to their norm. Adam changes a weight by about the learning
rate at each step. Trained weights have a root mean square of about 0.02 to 0.1, so 1e-2 of their norm is a learning
rate of 2e-4 to 1e-3, one to three orders of magnitude above published recipes."""
_BROKEN = 0.3
"""Change of the weights in one step, relative to their norm, above which this single step is reported. It is 30 times
``_HIGH``, so one such step changes the weights more than several consecutive steps just above ``_HIGH``. After such a
step, the policy often earns only equal rewards. Further steps then change nothing, so the several consecutive steps
above ``_HIGH`` that are required for a report never occur."""
_LOW = 1e-7
"""Smallest useful change of the weights per step, relative to their norm: float32 resolves 6e-8 of a value, so smaller
changes are mostly rounded away."""
_LEAST_LOW = 5


def _high(run: RunRecord) -> Evidence | None:
    # The first steps need no exception: Adam's first steps are as long as later ones, although its moments begin at 0.
    points = run.series("weights/change")
    found = spell(points, lambda change: change > _HIGH) or spell(points, lambda change: change > _BROKEN, least=1)
    if found is None:
        return None
    rates = dict(run.series("learning_rate"))
    rate = rates.get(found.since, float(run.option("optim.learning_rate", 0.0)))
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{_changed(found)}, at a learning rate of {rate:.2g}.",
        figures={"weights/change": found.mean, "learning_rate": rate},
        episodes=run.examples(found.since, found.until, lambda episode: episode.available and not episode.correct),
    )


def _changed(found: Spell) -> str:
    change, count = f"changed the weights by {found.mean:.2g} times their norm", len(found.values)
    return f"{count} consecutive steps {change} on average" if count > 1 else f"One step {change}"


def _low(run: RunRecord) -> Evidence | None:
    trained = dict(run.series("tokens/trained"))
    points = [(step, change) for step, change in run.series("weights/change") if trained.get(step, 1.0) > 0]
    warm = int(run.option("optim.warmup_steps", 0))
    if warm >= int(run.option("run.steps", warm + 1)):
        warm = 0  # the whole run is a warm-up, so the steps of the warm-up must be judged
    found = spell([point for point in points if point[0] > warm], lambda change: change < _LOW, _LEAST_LOW)
    if found is None:
        return None
    rates = [rate for _, rate in run.series("learning_rate")]
    rate = median(rates) if rates else float(run.option("optim.learning_rate", 0.0))
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"Each of {len(found.values)} consecutive steps with a signal changed the weights by at most "
        f"{max(found.values):.2g} of their norm, at a learning rate of {rate:.2g}.",
        figures={"weights/change": found.mean, "learning_rate": rate},
    )


register(
    RunCheck(
        name="learning_rate_high",
        title="The learning rate is too high",
        looks_at="`weights/change`: the relative change of the trainable weights in one step",
        rule="the relative change of the weights is more than 1e-2 in 3 consecutive steps, or more than 0.3 in one "
        "step: 1e-2 is 10 to 1000 times the change in published recipes, and after a change of 0.3 often no group has "
        "a signal, so nothing is learned any more",
        severity="error",
        cause="A learning rate for pretraining or for LoRA, used on all weights.",
        change=("--set optim.learning_rate=1e-6", "--set optim.warmup_steps=10"),
        otherwise="Adapters (LoRA) begin at zero, so that their relative change is large at first; the finding ends "
        "when the norm of the adapters has grown.",
        needs=("weights/change",),
        look=_high,
        effects=(
            "all_right",
            "all_wrong",
            "clip_always",
            "entropy_collapsed",
            "entropy_exploded",
            "episodes_identical",
            "few_signals",
            "gradient_nan",
            "held_out_falls",
            "kl_runs_away",
            "lengths_collapse",
            "lengths_explode",
            "repetition",
            "template_wrong",
            "tool_fails",
            "tool_unused",
        ),
    ),
    RunCheck(
        name="learning_rate_low",
        title="The learning rate is too low",
        looks_at="`weights/change` in the steps that trained on rows with an advantage, after the warm-up if it is "
        "shorter than the run",
        rule="the relative change of the weights is less than 1e-7 in 5 consecutive steps: the resolution of float32 "
        "is 6e-8, so most of the update is lost to rounding",
        severity="error",
        cause="A learning rate that is too low, or a schedule that has ended.",
        change=("--set optim.learning_rate=1e-6", "--set optim.lr_scheduler=constant_with_warmup"),
        otherwise="Weights in bfloat16, whose relative resolution is only 4e-3, so updates are lost to rounding.",
        needs=("weights/change",),
        look=_low,
        effects=("clip_never",),
    ),
)
