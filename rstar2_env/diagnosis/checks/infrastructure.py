"""Checks for failures of the sandbox, for injected faults, and for failures of the verifier."""

from __future__ import annotations

from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.base import PLAYED, Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData
from rstar2_env.diagnosis.spells import least_of, shares, spell

_AWAY = 0.1
_CALLS, _BY_CHANCE = 50, 1e-6
_SLOW = 0.05
_WRAPPER = "fault_injection"


def _is_away(one: EpisodeDigest) -> bool:
    return one.end == "unavailable" or ToolStatus.UNAVAILABLE in one.statuses


def _unavailable(run: RunRecord) -> Evidence | None:
    found = spell(shares(run, "unavailable", _is_away, lambda one: True), lambda share: share > _AWAY, least_of(run))
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"In {100 * found.mean:.0f} % of the episodes, a tool call or the end of the episode was `unavailable`.",
        figures={"share unavailable": found.mean},
        episodes=run.examples(found.since, found.until, _is_away),
    )


def fault_rate(run: RunRecord) -> float:
    """Return the probability with which the run's options inject a fault into a call; 0 if they inject none."""
    for wrapper in run.option("rollout.wrappers", ()):
        if isinstance(wrapper, dict):
            name, options = str(wrapper.get("name", "")), {**wrapper, **(wrapper.get("options") or {})}
        else:
            name, _, rest = str(wrapper).partition(":")
            options = dict(one.split("=", 1) for one in rest.split(",") if "=" in one)
        if name == _WRAPPER:
            rate = options.get("rate", 0.0)
            try:
                return float(sum(rate.values()) if isinstance(rate, dict) else rate)
            except (TypeError, ValueError):
                return 0.0  # a rate in another form, such as a text with a rate for each kind
    return 0.0


def _calls(step: StepData) -> tuple[int, int]:
    """Return the number of a step's calls, and how many of them are labelled as injected."""
    labelled = sum(one.injected for one in step.episodes)
    return sum(len(one.statuses) for one in step.episodes) + labelled, labelled


def _unlabelled(run: RunRecord) -> Evidence | None:
    rate = fault_rate(run)
    calls, labelled = 0, 0
    for step in run.steps:
        own = step.once("injected", _calls)
        calls += own[0]
        labelled += own[1]
        if labelled:
            return None
        # A fault has no effect on a call that fails by itself, so assume that only half of the faults are visible.
        chance = (1 - rate / 2) ** calls
        if calls >= _CALLS and chance < _BY_CHANCE:
            return Evidence(
                since=step.number,
                until=None,
                says=f"The options inject a fault into {100 * rate:g} % of the calls, but none of the {calls} calls "
                f"up to step {step.number} is labelled as injected (at half of this rate, the probability of this is "
                f"{chance:.0e}).",
                figures={"calls": calls, "labelled": 0},
                episodes=run.examples(
                    step.number, step.number, lambda one: any(status.is_error for status in one.statuses)
                ),
            )
    return None


def _has_verdicts(step: StepData) -> bool:
    return any(one.verdict for one in step.episodes)


def _verifier(run: RunRecord) -> Evidence | None:
    points = shares(run, "verdict", lambda one: one.verdict == "timeout", lambda one: bool(one.verdict))
    found = spell(points, lambda share: share > _SLOW, least_of(run))
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The verifier ran out of time on {100 * found.mean:.0f} % of the answers, which count as wrong.",
        figures={"share of timeouts": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.verdict == "timeout"),
    )


register(
    RunCheck(
        name="sandbox_unavailable",
        title="The sandbox is unavailable",
        looks_at="the status `unavailable` of calls and the end `unavailable` of episodes",
        rule="more than 10 % of the episodes in 3 consecutive steps or in an evaluation: such calls are "
        "retried, so the remaining failures are not accidental",
        severity="error",
        cause="Workers that die, servers that do not answer, or a machine without memory: see `error` of the episodes.",
        change=("rstar2 sandbox check", "rstar2 doctor", "--set rollout.max_in_flight=FEWER"),
        otherwise="A verifier or a judge that is unavailable: the error of the episodes names it.",
        needs=("episodes",),
        look=_unavailable,
        kinds=PLAYED,
    ),
    RunCheck(
        name="faults_unlabelled",
        title="Injected faults are not labelled",
        looks_at="`injected` of the episodes, and the rate of the wrapper `fault_injection` in the options",
        rule=f"no call is labelled, although the probability of this would be below {_BY_CHANCE:g} even if faults were "
        "injected at only half of the rate: half is used, because a fault in a call that fails anyway changes nothing",
        severity="error",
        cause="A wrapper around the injected faults that drops their labels: the policy is then punished for them.",
        change=("--set rollout.wrappers=[]", "rstar2 validate ENV"),
        otherwise="A tool that is hardly called: the check waits for 50 calls.",
        needs=("episodes", "option:rollout"),
        look=_unlabelled,
        applies=lambda run: fault_rate(run) > 0,
    ),
    RunCheck(
        name="verifier_times_out",
        title="The verifier runs out of time",
        looks_at="`verdict` of the episodes",
        rule="the reason `timeout` for more than 5 % of the answers in 3 consecutive steps or in an evaluation; in "
        "recorded answers of models, this share is below 0.5 %",
        severity="warning",
        cause="Answers that are long expressions, or a machine that is busy.",
        change=("--set env.verify_timeout_s=MORE", "--set rollout.max_in_flight=FEWER"),
        otherwise="A policy that has learned to write answers that cannot be compared: open the episodes.",
        needs=("episodes",),
        look=_verifier,
        kinds=PLAYED,
        applies=lambda run: any(step.once("verdicts", _has_verdicts) for step in run.steps),
    ),
)
