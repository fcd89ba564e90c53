"""Checks for tool calls that the policy stopped making, that nearly all fail, or that mostly fail with one status."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

from rstar2_env.core.status import ToolStatus, error_share
from rstar2_env.diagnosis.base import PLAYED, Evidence, RunCheck, register
from rstar2_env.diagnosis.record import FigurePoint, RunRecord, StepData
from rstar2_env.diagnosis.spells import Spell, each_step, lasting, least_of, rolling, spell, start_level

_USED, _UNUSED, _WINDOW = 0.3, 0.05, 3
"""A policy uses its tools if it makes at least ``_USED`` calls per episode at the start. It has stopped using them
if the mean over ``_WINDOW`` steps is below ``_UNUSED`` calls per episode, or below ``_UNUSED`` times the calls at the
start."""
_FAILS, _FAILS_LOW, _CALLS = 0.9, 0.87, 5
_RARE = 0.05
"""Share of episodes with a call (or calls per episode, if the run has no episodes) below which calls are so rare that
their errors explain nothing."""
_DOMINATES = 0.5


def _unused(run: RunRecord) -> Evidence | None:
    calls = run.series("rollout/tool_calls")
    start = start_level(calls)
    if start is None or start < _USED:
        return None
    found = spell(rolling(calls, _WINDOW), lambda number: number < _UNUSED * max(1.0, start))
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The policy makes {found.last:.2g} tool calls an episode; at the start it made {start:.2g}.",
        figures={"rollout/tool_calls": found.last, "at the start": start},
        episodes=run.examples(found.since, found.until, lambda one: one.available and not one.statuses),
    )


def _error_share(step: StepData) -> float | None:
    counts = step.once("statuses", _statuses)
    return error_share(list(counts.elements())) if counts.total() >= _CALLS else None


def _statuses(step: StepData) -> Counter[ToolStatus]:
    return Counter(status for one in step.episodes if one.available for status in one.statuses)


def _calling(step: StepData) -> tuple[int, int]:
    """Return the number of a step's available episodes, and the number of available episodes with a call."""
    played = [one for one in step.episodes if one.available]
    return len(played), sum(bool(one.statuses) for one in played)


def _enough_calls(run: RunRecord, found: Spell) -> bool:
    """Whether the steps of a spell have enough calls, in enough of their episodes, to judge the share of errors."""
    last = run.last if found.until is None else found.until
    steps = [one for one in run.steps if found.since <= one.number <= last]
    counts = [step.once("calling", _calling) for step in steps]
    if played := sum(each for each, _ in counts):
        calls = sum(step.once("statuses", _statuses).total() for step in steps)
        return calls >= _CALLS and sum(calling for _, calling in counts) >= _RARE * played
    means = [step.figures["rollout/tool_calls"] for step in steps if "rollout/tool_calls" in step.figures]
    return not means or fmean(means) >= _RARE


def _fails(run: RunRecord) -> Evidence | None:
    points = each_step(run, "error share", _error_share) or run.series("rollout/tool_error_share")
    found = lasting(points, _FAILS, _FAILS_LOW, least_of(run))
    if found is None or not _enough_calls(run, found):
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % of the policy's tool calls are errors.",
        figures={"rollout/tool_error_share": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: any(status.is_error for status in one.statuses)),
    )


def _shares_of(run: RunRecord) -> dict[ToolStatus, list[FigurePoint]]:
    """Return, for each status other than ``ok``, its share of the calls of each step."""
    steps = [(step.number, step.once("statuses", _statuses)) for step in run.steps]
    counted = [(number, own, own.total()) for number, own in steps if own.total() >= _CALLS]
    found = {status for _, own, _ in counted for status in own if status is not ToolStatus.OK}
    return {status: [(number, own[status] / total) for number, own, total in counted] for status in sorted(found)}


def _status(run: RunRecord) -> Evidence | None:
    spells = {
        status: lasting(points, _DOMINATES, _DOMINATES, least_of(run)) for status, points in _shares_of(run).items()
    }
    named = {status: own for status, own in spells.items() if own is not None}
    if not named:
        return None
    status, found = max(named.items(), key=lambda one: (one[1].until is None, one[1].since + len(one[1].values)))
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % of the tool calls end with the status `{status}`.",
        figures={f"rollout/status/{status}": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: status in one.statuses),
    )


register(
    RunCheck(
        name="tool_unused",
        title="The policy no longer calls the tool",
        looks_at="`rollout/tool_calls`, mean of 3 steps, against the median of the first 3 steps",
        rule="the policy made at least 0.3 calls an episode at the start, and in 3 consecutive means of 3 steps it "
        "makes fewer than 0.05 calls an episode, or fewer than 5 % of the calls at the start",
        severity="warning",
        cause="Calls that fail or are penalized, or problems that the policy solves better without the tool.",
        change=("--set selector=roc", "--set reward=return", "rstar2 sft --traces traces.jsonl --model MODEL"),
        otherwise="A policy that has learned to solve these problems without the tool: then the pass rate has risen.",
        needs=("rollout/tool_calls",),
        look=_unused,
    ),
    RunCheck(
        name="tool_fails",
        title="Tool calls fail",
        looks_at="statuses of the policy's calls, without injected faults and `unavailable`",
        rule="more than 90 % of the calls are errors in 3 consecutive steps or in an evaluation, or more than 87 % "
        "over 5 steps, if at least 5 % of the episodes call the tool (steps and evaluations with fewer than 5 calls "
        "are left out): a model that has not learned to use the tool fails in 30 to 70 % of its calls",
        severity="error",
        cause="A dialect, a name of the tool or its arguments that the model does not know, or a tool that is broken.",
        change=(
            "rstar2 sandbox run -c 'print(6 * 7)'",
            "--set env.dialect=fenced",
            "rstar2 sft --traces traces.jsonl --model MODEL",
        ),
        otherwise="A base model that has never seen the tool: a cold start teaches it.",
        needs=("episodes|rollout/tool_error_share",),
        look=_fails,
        kinds=PLAYED,
        effects=("all_wrong", "cut_by_turns", "repetition", "tool_unused"),
    ),
    RunCheck(
        name="status_dominates",
        title="One status dominates the tool calls",
        looks_at="the share of each status, except `ok`, in the calls of a step",
        rule="one status other than `ok` has more than 50 % of the calls in 3 consecutive steps, in an evaluation, or "
        "on average over 5 steps (steps and evaluations with fewer than 5 calls are left out): a policy's own mistakes "
        "are spread over several statuses, so a status that dominates has a single cause",
        severity="warning",
        cause="`timeout`, `memory` and `output_limit`: limits of the sandbox; `blocked`: its isolation; `malformed`, "
        "`unknown_tool` and `invalid_arguments`: the dialect; `empty`: programs that do not print.",
        change=("--set env.limits.wall_s=MORE", "rstar2 sandbox check", "--set env.dialect=fenced"),
        otherwise="Problems that all need the same unavailable module: see the error of the calls.",
        needs=("episodes",),
        look=_status,
        kinds=PLAYED,
        effects=("all_wrong", "cut_by_turns", "tool_fails", "tool_unused"),
    ),
)
