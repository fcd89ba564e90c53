"""Check for a policy that repeats the same words."""

from __future__ import annotations

from statistics import fmean

from rstar2_env.diagnosis.base import PLAYED, Evidence, RunCheck, register
from rstar2_env.diagnosis.record import FigurePoint, RunRecord, StepData
from rstar2_env.diagnosis.spells import Spell, each_step, lasting, least_of, shares, start_level

_SHARE, _MORE = 0.4, 0.2
_LOOPS, _MANY = 0.5, 0.2
"""An episode counts as a loop if its repetition (``EpisodeDigest.repetition``) is above ``_LOOPS``. Loops are reported
if their share of the episodes stays above ``_MANY``. The checks in ``budgets`` use the same share for cut episodes,
which do as much harm as loops."""


def _repeated(step: StepData) -> float | None:
    counted = [one.repetition for one in step.episodes if one.available and one.text]
    return fmean(counted) if counted else None


def _mean(run: RunRecord) -> list[FigurePoint]:
    return each_step(run, "repetition", _repeated)


def _looping(run: RunRecord) -> list[FigurePoint]:
    return shares(run, "looping", lambda one: one.repetition > _LOOPS, lambda one: one.available and bool(one.text))


def _above(run: RunRecord, points: list[FigurePoint], least: float) -> Spell | None:
    start = start_level(points)
    # If the policy repeats itself from the first step on, its level at the start is not a standard of comparison.
    bound = least if start is None or start > least else max(least, start + _MORE)
    return lasting(points, bound, bound, least_of(run))


def _look(run: RunRecord) -> Evidence | None:
    repeated, looping = _above(run, _mean(run), _SHARE), _above(run, _looping(run), _MANY)
    found = repeated or looping
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % "
        + (
            "of the four-word sequences of an episode occurred earlier in the same episode."
            if repeated
            else "of the episodes consist mostly of four-word sequences that occurred earlier in the same episode."
        ),
        figures={"repetition" if repeated else "looping episodes": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.repetition > _SHARE),
    )


register(
    RunCheck(
        name="repetition",
        title="The policy repeats itself",
        looks_at="the share of four-word sequences of the policy's turns that already occurred in the episode",
        rule="in 3 consecutive steps or in an evaluation, the mean share of repeated sequences is above 40 %, or more "
        "than 20 % of the episodes have a share above 50 %; a value that starts below its bound (40 % or 20 %) must "
        "also rise by more than 20 points: in ordinary solutions with code, 5 to 20 % of the sequences are repeated",
        severity="warning",
        cause="A collapsed or damaged policy, or a reward that grows with the length or the number of calls.",
        change=("--set optim.learning_rate=LOWER", "--set rollout.max_turn_tokens=LESS"),
        otherwise="Programs that are written again with one change after an error: see `tool_fails`.",
        needs=("episodes",),
        look=_look,
        kinds=PLAYED,
        effects=("cut_by_tokens", "lengths_explode"),
    ),
)
