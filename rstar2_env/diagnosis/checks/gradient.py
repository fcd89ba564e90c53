"""Checks for a gradient that is not a number, is zero although rewards differ within groups, or is always clipped."""

from __future__ import annotations

import math

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.checks.signal import signal_shares
from rstar2_env.diagnosis.record import RunRecord, StepData
from rstar2_env.diagnosis.spells import each_step, spell

_FAR = 10.0
_CLIPPED = 5


def _nan(run: RunRecord) -> Evidence | None:
    broken: dict[int, list[str]] = {}
    for name in ("loss", "grad_norm"):
        for step, value in run.points(name):
            if not math.isfinite(value):
                broken.setdefault(step, []).append(name)
    if not broken:
        return None
    first, last = min(broken), max(broken)
    figures = sorted({name for names in broken.values() for name in names})
    # The fault has ended only if later steps report values; a step in progress reports none yet.
    ended = all(run.points(name)[-1][0] > last for name in figures)
    return Evidence(
        since=first,
        until=last if ended else None,
        says=f"At {len(broken)} of {len(run.steps)} steps, first at step {first}, "
        f"{' or '.join(figures)} is not finite.",
        figures={"steps": len(broken)},
        episodes=run.examples(first, first, lambda episode: episode.kept),
    )


def _differ(step: StepData) -> bool:
    """Return whether a step has a group whose kept episodes have different rewards.

    Such episodes should have advantages other than 0.
    """
    return any(len({one.reward for one in group if one.kept}) > 1 for group in step.groups())


def _zero(run: RunRecord) -> Evidence | None:
    # A log without the number of trained tokens may have the number of groups with a signal.
    trained = {step: signal for step, _, signal in signal_shares(run)} | dict(run.series("tokens/trained"))
    compared = dict(each_step(run, "kept/rewards differ", _differ))
    points = [
        (step, value)
        for step, value in run.series("grad_norm")
        if trained.get(step, 1.0) > 0 or compared.get(step, False)
    ]
    found = spell(points, lambda value: value == 0)
    if found is None:
        return None
    last = run.last if found.until is None else found.until
    known = any(found.since <= step <= last and (step in trained or compared[step]) for step, _ in points)
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The norm of the gradient is exactly 0 in {len(found.values)} consecutive steps"
        + (
            ", although rows with an advantage were trained on, or episodes of a group have different rewards."
            if known
            else ". It is not recorded whether a group had a signal in these steps."
        ),
        figures={"grad_norm": found.last},
        episodes=run.examples(found.since, found.until, lambda episode: episode.kept),
    )


def _clipped(run: RunRecord) -> Evidence | None:
    bound = float(run.option("optim.max_grad_norm", 1.0))
    found = spell(run.series("grad_norm"), lambda value: value > _FAR * bound, _CLIPPED)
    if found is None or bound <= 0:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The norm of the gradient is {found.mean:.3g} on average over {len(found.values)} consecutive "
        f"steps, {found.mean / bound:.0f} times the bound of {bound:g}, so each gradient is clipped to "
        "the bound.",
        figures={"grad_norm": found.mean, "max_grad_norm": bound},
    )


register(
    RunCheck(
        name="gradient_nan",
        title="The loss or the gradient is not a number",
        looks_at="`loss` and `grad_norm` of every step",
        rule="`loss` or `grad_norm` of a step is not finite: in a working run, they are finite in every step",
        severity="error",
        cause="An overflow in half precision, or a ratio of probabilities that is not bounded.",
        change=("--set model.dtype=bfloat16", "--set optim.learning_rate=LOWER", "--set loss.ppo_clip.two_sided=4"),
        otherwise="A reward or an advantage that is not finite: see `reward` of the episodes of that step.",
        needs=("grad_norm|loss",),
        look=_nan,
        finite=False,
        kinds=frozenset({"training", "sft"}),
        effects=("all_wrong",),
    ),
    RunCheck(
        name="gradient_zero",
        title="The gradient is zero",
        looks_at="`grad_norm` of the steps that trained on rows with an advantage (`tokens/trained`), or in which "
        "the kept episodes of a group have unequal rewards",
        rule="in 3 consecutive steps that should change the weights, the norm of the gradient is exactly 0: a policy "
        "gradient over sampled tokens is never exactly 0",
        severity="error",
        cause="Weights that are frozen, tokens that are all masked or all clipped, or an advantage that is always 0.",
        change=("--set model.lora_rank=0", "--set loss.ppo_clip.low=0.2 --set loss.ppo_clip.high=0.28"),
        otherwise="Steps without a group that has a signal: `all_wrong`, `all_right`, `all_rejected` and `few_signals` "
        "name such steps.",
        needs=("grad_norm",),
        look=_zero,
        kinds=frozenset({"training", "sft"}),
        effects=("clip_never", "learning_rate_low"),
    ),
    RunCheck(
        name="gradient_clipped",
        title="The gradient is clipped at every step",
        looks_at="`grad_norm` and `optim.max_grad_norm`",
        rule="the norm of the gradient is more than 10 times `optim.max_grad_norm` in 5 consecutive steps: a norm of a "
        "few times `optim.max_grad_norm` is common and harmless, since Adam divides by the gradient's scale",
        severity="warning",
        cause="A bound that is too low for the size of the model, or a loss that is not averaged.",
        change=("--set optim.max_grad_norm=HIGHER", "--set aggregation=token_mean"),
        otherwise="A single outlier of the reward: see whether the rewards of these steps have a common scale.",
        needs=("grad_norm",),
        look=_clipped,
        kinds=frozenset({"training", "sft"}),
    ),
)
