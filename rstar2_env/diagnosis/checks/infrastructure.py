"""Checks for failures of the sandbox, for injected faults, and for failures of the verifier."""

from __future__ import annotations

import math

from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.base import PLAYED, Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData
from rstar2_env.diagnosis.spells import frequent

_AWAY = 0.1, 0.06, 0.5
_CALLS, _BY_CHANCE = 50, 1e-6
_SLOW = 0.05, 0.03, 0.2
_WRAPPER = "fault_injection"


def _is_away(one: EpisodeDigest) -> bool:
    return one.end == "unavailable" or ToolStatus.UNAVAILABLE in one.statuses


def _unavailable(run: RunRecord) -> Evidence | None:
    found = frequent(run, "unavailable", _is_away, _AWAY, of=lambda one: True)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"In {100 * found.mean:.0f} % of the episodes{found.of_task}, a tool call or the end of the episode was "
        "`unavailable`.",
        figures={"share unavailable": found.mean},
        episodes=run.examples(found.since, found.until, _is_away),
        effects=None if found.in_most else (),
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


def _calls(step: StepData) -> dict[int, tuple[int, int]]:
    """Return, by process, the number of a step's calls, and the number of calls that are labelled as injected."""
    found: dict[int, tuple[int, int]] = {}
    for one in step.episodes:
        calls, labelled = found.get(one.rank, (0, 0))
        found[one.rank] = (calls + len(one.statuses) + one.injected, labelled + one.injected)
    return found


def _chance(labelled: int, calls: int, rate: float) -> float:
    """Return an upper bound of the probability that at most ``labelled`` of ``calls`` calls are labelled as injected.

    Each call is labelled with probability ``rate``. The bound is Chernoff's; it is exact if ``labelled`` is 0.
    """
    share = labelled / calls
    if share >= rate:
        return 1.0
    rest = (1 - share) * math.log((1 - share) / (1 - rate))
    return math.exp(-calls * (rest + (share * math.log(share / rate) if share else 0.0)))


def _unlabelled(run: RunRecord) -> Evidence | None:
    # A fault has no effect on a call that fails by itself, so assume that only half of the faults are visible.
    rate = min(0.99, fault_rate(run) / 2)
    every: dict[int, tuple[int, int]] = {}
    latest: dict[int, tuple[int, int]] = {}  # calls since the last step with a label
    for step in run.steps:
        for rank, (calls, labelled) in step.once("injected", _calls).items():
            before = every.get(rank, (0, 0))
            every[rank] = (before[0] + calls, before[1] + labelled)
            latest[rank] = (0, 0) if labelled else (latest.get(rank, (0, 0))[0] + calls, 0)
        for rank in every:
            for calls, labelled in (every[rank], latest[rank]):
                if calls >= _CALLS and (chance := _chance(labelled, calls, rate)) < _BY_CHANCE:
                    return Evidence(
                        since=step.number,
                        until=None,
                        says=f"The options inject a fault into {200 * rate:g} % of the calls, but {labelled or 'none'} "
                        f"of {calls} calls up to step {step.number}"
                        + (f" of process {rank}" if len(every) > 1 else "")
                        + f" {'are' if labelled > 1 else 'is'} labelled as injected (even at half of this rate, so "
                        f"few labels have a probability of {chance:.0e}).",
                        figures={"calls": calls, "labelled": labelled},
                        episodes=run.examples(
                            step.number, step.number, lambda one: any(status.is_error for status in one.statuses)
                        ),
                    )
    return None


def _has_verdicts(step: StepData) -> bool:
    return any(one.verdict for one in step.episodes)


def _verifier(run: RunRecord) -> Evidence | None:
    found = frequent(run, "verdict", lambda one: one.verdict == "timeout", _SLOW, of=lambda one: bool(one.verdict))
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The verifier ran out of time on {100 * found.mean:.0f} % of the answers{found.of_task}, which count as "
        "wrong.",
        figures={"share of timeouts": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.verdict == "timeout"),
        effects=None if found.in_most else (),
    )


register(
    RunCheck(
        name="sandbox_unavailable",
        title="The sandbox is unavailable",
        looks_at="the status `unavailable` of calls and the end `unavailable` of episodes",
        rule="more than 10 % of the episodes in 3 consecutive steps or in an evaluation are `unavailable` or have an "
        "`unavailable` call, or more than 6 % over 5 steps, or more than half of the latest episodes of a task: "
        "`unavailable` calls are retried, so the remaining failures are not accidental",
        severity="error",
        cause="Workers that die, servers that do not answer, or a machine without memory: see `error` of the episodes.",
        change=("rstar2 sandbox check", "rstar2 doctor", "--set rollout.max_in_flight=FEWER"),
        otherwise="A verifier or a judge that is unavailable: the error of the episodes names it.",
        needs=("episodes",),
        look=_unavailable,
        kinds=PLAYED,
        effects=("all_unavailable", "all_wrong", "throughput_falls"),
    ),
    RunCheck(
        name="faults_unlabelled",
        title="Injected faults are not labelled",
        looks_at="`injected` of the episodes, and the rate of the wrapper `fault_injection` in the options",
        rule="the number of labelled calls of a process, in the whole run or since its last labelled call, is so low "
        f"that chance would give it with a probability below {_BY_CHANCE:g}, even at half of the rate of the wrapper: "
        "half of the rate is used, because a fault in a call that fails anyway changes nothing",
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
        rule="the verifier's reason is `timeout` for more than 5 % of the answers in 3 consecutive steps or in an "
        "evaluation, for more than 3 % over 5 steps, or for more than 20 % of the latest answers to a task: in "
        "recorded answers of models, the share of timeouts is below 0.5 %",
        severity="warning",
        cause="Answers that are long expressions, or a machine that is busy.",
        change=("--set env.verify_timeout_s=MORE", "--set rollout.max_in_flight=FEWER"),
        otherwise="A policy that has learned to write answers that cannot be compared: open the episodes.",
        needs=("episodes",),
        look=_verifier,
        kinds=PLAYED,
        applies=lambda run: any(step.once("verdicts", _has_verdicts) for step in run.steps),
        effects=("all_wrong",),
    ),
)
