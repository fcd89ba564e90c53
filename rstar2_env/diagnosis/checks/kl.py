"""Check for a KL divergence to the reference model that keeps growing."""

from __future__ import annotations

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.spells import spell

_FAR, _TIMES, _BACK = 0.5, 2.0, 10
_LEAST = 5
"""Number of consecutive steps that a finding needs. ``kl`` is the mean of exp(-d) - 1 + d over the tokens of a step,
where d is the policy's log-probability of a token minus the reference model's. It has a heavy tail: even in a run that
learns, there are a few steps in which 2 of 800 tokens contribute nine tenths of the sum."""


def _look(run: RunRecord) -> Evidence | None:
    points = run.series("kl")
    # The value 10 steps earlier (or at the first step), to which each value is compared.
    earlier = [points[max(0, at - _BACK)][1] for at in range(len(points))]
    away = [
        (step, value if value > min(_TIMES * before, 10 * _FAR) else 0.0)
        for (step, value), before in zip(points, earlier, strict=True)
    ]
    found = spell(away, lambda value: value > _FAR, _LEAST)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The KL divergence to the reference model is {found.last:.3g} nats a token and grows.",
        figures={"kl": found.last},
        episodes=run.examples(found.since, found.until, lambda episode: episode.kept),
    )


register(
    RunCheck(
        name="kl_runs_away",
        title="The policy diverges from the reference model",
        looks_at="`kl`, which a KL term of the loss reports",
        rule="more than .5 nats a token and twice the value of 10 steps before (or more than 5) in 5 consecutive "
        "steps: runs that keep their abilities stay below .1, a stable distance does not grow, and peaks caused by "
        "a few tokens last for fewer steps",
        severity="error",
        cause="A learning rate that is too high for the KL coefficient, or ratios that are not bounded.",
        change=("--set loss.kl.coef=0.01", "--set optim.learning_rate=LOWER", "--set hook=reference_reset"),
        otherwise="A reference model that differs from the policy from the first step on, such as another cold start.",
        needs=("kl",),
        look=_look,
    ),
)
