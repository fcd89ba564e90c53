"""Check for a KL divergence to the reference model that keeps growing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import FigurePoint, RunRecord
from rstar2_env.diagnosis.spells import LEAST, spell

_FAR, _TIMES, _BACK = 0.5, 2.0, 10
_LEVEL, _LARGE = 0.02, 10.0
"""``kl`` is reported if it is above ``_LARGE`` times its earlier level; an earlier level below ``_LEVEL`` is replaced
by ``_LEVEL``. Within ten steps, a run that learns may double its ``kl``, but does not multiply it by 10."""
_LEAST, _MOST = 5, 0.7
"""Number of steps that a finding needs, and the share of these steps at which the rule must hold. ``kl`` is the mean of
exp(-d) - 1 + d over the tokens of a step, where d is the policy's log-probability of a token minus the reference
model's. Single steps prove nothing, because this mean has a heavy tail: even in a run that learns, there are a few
steps in which 2 of 800 tokens contribute nine tenths of the sum."""


def _earlier(points: Sequence[FigurePoint], at: int) -> float:
    """Return an earlier level of a metric: the median of 5 values, of which the last is ``_BACK`` points before ``at``.

    At the start of a run, it is the median of the first ``LEAST`` values.
    """
    stop = max(LEAST, at - _BACK + 1)
    return median(value for _, value in points[max(0, stop - 5) : stop])


def _away(value: float, before: float) -> bool:
    """Return whether a value of ``kl`` is large, and much larger than the earlier level ``before``."""
    far = value > _FAR and value > min(_TIMES * before, 10 * _FAR)
    return far or value > _LARGE * max(_LEVEL, before)


def _look(run: RunRecord) -> Evidence | None:
    points = run.series("kl")
    away = [(step, _away(value, _earlier(points, at))) for at, (step, value) in enumerate(points)]
    found = spell(away, lambda share: share > _MOST, _LEAST)
    if found is None:
        return None
    last = points[-1][1] if found.until is None else dict(points)[found.until]
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The KL divergence to the reference model is {last:.3g} nats a token and grows.",
        figures={"kl": last},
        episodes=run.examples(found.since, found.until, lambda episode: episode.kept),
    )


register(
    RunCheck(
        name="kl_runs_away",
        title="The policy diverges from the reference model",
        looks_at="`kl`, which a KL term of the loss reports",
        rule="over at least 5 consecutive steps, the divergence is above the smallest of three bounds in more than 70 "
        "% of them. The bounds are 5 nats a token; 0.5 nats or twice the earlier level, whichever is larger; and 0.2 "
        "nats or 10 times the earlier level, whichever is larger. The earlier level is the median of 5 steps, the last "
        "of them 10 steps before the judged step: runs that keep their abilities stay below 0.1 nats, a stable "
        "distance does not grow, and peaks caused by a few tokens last for fewer steps",
        severity="error",
        cause="A learning rate that is too high for the KL coefficient, or ratios that are not bounded.",
        change=("--set loss.kl.coef=0.01", "--set optim.learning_rate=LOWER", "--set hook.reference_reset.most_kl=0.5"),
        otherwise="A reference model that differs from the policy from the first step on, such as the model of another "
        "cold start.",
        needs=("kl",),
        look=_look,
        effects=("held_out_falls",),
    ),
)
