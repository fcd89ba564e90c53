"""Checks for episodes that end because a budget is spent: tokens, turns or time."""

from __future__ import annotations

from collections.abc import Callable

from rstar2_env.diagnosis.base import PLAYED, Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.spells import frequent

_BOUNDS = 0.25, 0.2, 0.5


def _cut(end: str) -> Callable[[RunRecord], Evidence | None]:
    def look(run: RunRecord) -> Evidence | None:
        found = frequent(run, f"end/{end}", lambda one: one.end == end, _BOUNDS, otherwise=f"rollout/end/{end}")
        if found is None:
            return None
        return Evidence(
            since=found.since,
            until=found.until,
            says=f"{100 * found.mean:.0f} % of the episodes{found.of_task} end because they have used up their budget "
            f"of {end}.",
            figures={f"rollout/end/{end}": found.mean},
            episodes=run.examples(found.since, found.until, lambda one: one.end == end),
            effects=None if found.in_most else (),
        )

    return look


def _check(end: str, change: tuple[str, ...], cause: str, otherwise: str) -> RunCheck:
    return RunCheck(
        name=f"cut_by_{end}",
        title=f"Answers are cut by the budget of {end}",
        looks_at=f"the episodes whose `end` is `{end}`",
        rule=f"the `end` is `{end}` in more than 25 % of the episodes of 3 consecutive steps or of an evaluation, in "
        "more than 20 % over 5 steps, or in more than half of the latest episodes of a task: an episode that is cut by "
        "a budget counts as wrong even if its answer would have been right, so the reward favours short episodes",
        severity="warning",
        cause=cause,
        change=change,
        otherwise=otherwise,
        needs=(f"episodes|rollout/end/{end}",),
        look=_cut(end),
        kinds=PLAYED,
        effects=("all_wrong",),
    )


register(
    _check(
        "tokens",
        ("--set rollout.max_episode_tokens=MORE",),
        "A budget below the length of a typical solution, or a policy that does not end its turns.",
        "Repetition, or a template that does not fit; other checks look for both.",
    ),
    _check(
        "turns",
        ("--set env.max_turns=MORE",),
        "A limit below the number of tool calls that a solution needs.",
        "A tool that always fails, so that the policy tries again: see `tool_fails`.",
    ),
    _check(
        "time",
        ("--set rollout.max_episode_seconds=MORE",),
        "A limit that is too short for the speed of the engine or the sandbox on this machine.",
        "A machine that is busy with other programs: see `throughput_falls`.",
    ),
)
