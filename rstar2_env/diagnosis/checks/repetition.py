"""Check for a policy that repeats the same words."""

from __future__ import annotations

from statistics import fmean

from rstar2_env.diagnosis.base import PLAYED, Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord, StepData
from rstar2_env.diagnosis.spells import each_step, least_of, spell, start_level

_SHARE, _MORE = 0.4, 0.2


def _repeated(step: StepData) -> float | None:
    counted = [one.repetition for one in step.episodes if one.available and one.text]
    return fmean(counted) if counted else None


def _look(run: RunRecord) -> Evidence | None:
    points = each_step(run, "repetition", _repeated)
    start = start_level(points)
    # A policy that repeats itself from the first step on has no level to compare with.
    bound = _SHARE if start is None or start > _SHARE else max(_SHARE, start + _MORE)
    found = spell(points, lambda share: share > bound, least_of(run))
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % of the four-word sequences of an episode already occurred in it.",
        figures={"repetition": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.repetition > _SHARE),
    )


register(
    RunCheck(
        name="repetition",
        title="The policy repeats itself",
        looks_at="the share of four-word sequences of the policy's turns that already occurred in the episode",
        rule="more than 40 % on average, and 20 points above the start, in 3 consecutive steps or in an evaluation: "
        "ordinary solutions with code have 5 to 20 %",
        severity="warning",
        cause="A collapsed or damaged policy, or a reward that grows with the length or the number of calls.",
        change=("--set optim.learning_rate=LOWER", "--set rollout.max_turn_tokens=LESS"),
        otherwise="Programs that are written again with one change after an error: see `tool_fails`.",
        needs=("episodes",),
        look=_look,
        kinds=PLAYED,
    ),
)
