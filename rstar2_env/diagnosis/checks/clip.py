"""Checks for a share of clipped tokens that is always 0 or close to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import FigurePoint, RunRecord
from rstar2_env.diagnosis.spells import spell

_NEVER, _MOST, _MOST_SEQUENCES = 20, 0.5, 0.95


def _updates(run: RunRecord) -> int:
    return int(run.option("optim.updates_per_rollout", 1)) * int(run.option("optim.minibatches", 1))


def _losses(run: RunRecord) -> Sequence[Mapping[str, Any]]:
    """Return the options of the losses, as the run recorded them."""
    return [one for one in run.option("parts.loss", ()) if isinstance(one, Mapping)]


def _clips(run: RunRecord) -> bool:
    """Whether any loss of a run has a bound beyond which a token gets no gradient; true if the losses are unknown.

    The loss ``cispo`` does not count: it reports the same metrics for tokens whose weight is at a bound, but these
    tokens keep their gradient.
    """
    losses = _losses(run)
    bounded = (one for one in losses if one.get("low") is not None or one.get("high") is not None)
    return not losses or any(one.get("name") != "cispo" for one in bounded)


def _may_clip(run: RunRecord) -> bool:
    return _updates(run) > 1 and _clips(run)


def _points(run: RunRecord) -> list[FigurePoint]:
    low, high = dict(run.series("clip/low")), dict(run.series("clip/high"))
    return [(step, low.get(step, 0.0) + high.get(step, 0.0)) for step in sorted({*low, *high})]


def _never(run: RunRecord) -> Evidence | None:
    points = _points(run)
    if len(points) < _NEVER or any(share for _, share in points):
        return None
    return Evidence(
        since=points[0][0],
        until=None,
        says=f"No token was clipped in {len(points)} steps, although a rollout has {_updates(run)} updates.",
        figures={"clip share": 0.0},
    )


def _always(run: RunRecord) -> Evidence | None:
    whole = any(one.get("level", "token") != "token" for one in _losses(run))
    found = spell(_points(run), lambda share: share > (_MOST_SEQUENCES if whole else _MOST))
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % of the tokens are clipped and therefore have no gradient, over "
        f"{len(found.values)} steps.",
        figures={"clip share": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.kept),
    )


_NEEDS = ("clip/low|clip/high",)

register(
    RunCheck(
        name="clip_never",
        title="No token is ever clipped",
        looks_at="`clip/low` and `clip/high` of a run with several updates for each rollout",
        rule="no token is clipped in a run of at least 20 steps: with several updates at a useful learning rate, "
        "0.1 to 2 % of the tokens are clipped; with one update per rollout the ratio is 1, so 0 is correct",
        severity="note",
        cause="A learning rate that is too low, or ratios that are computed against the current weights.",
        change=("--set optim.learning_rate=HIGHER",),
        otherwise="Wide bounds, which hardly any ratio reaches.",
        needs=_NEEDS,
        look=_never,
        applies=_may_clip,
    ),
    RunCheck(
        name="clip_always",
        title="Most tokens are clipped",
        looks_at="`clip/low` and `clip/high`",
        rule="in 3 consecutive steps, more than 50 % of the tokens are clipped (with ratios of turns or sequences, "
        "more than 95 %): clipped tokens have no gradient; the bounds of about 3e-4 for ratios of turns and sequences "
        "clip 60 to 85 % of the tokens in runs that learn",
        severity="error",
        cause="A learning rate that is too high, many updates for each rollout, or an engine whose probabilities "
        "differ from the trainer's.",
        change=(
            "--set optim.learning_rate=LOWER",
            "--set optim.updates_per_rollout=1",
            "--set loss.ppo_clip.high=0.28",
        ),
        otherwise="The first updates of a run, before the optimizer has adapted its steps.",
        needs=_NEEDS,
        look=_always,
        applies=_clips,
        effects=("gradient_zero",),
    ),
)
