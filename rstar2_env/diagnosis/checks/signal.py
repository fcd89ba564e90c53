"""Checks for groups without a signal: all their advantages are 0, so their episodes do not change the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.checks.reward import constant_reward
from rstar2_env.diagnosis.record import EpisodeDigest, FigurePoint, RunRecord, StepData
from rstar2_env.diagnosis.spells import LEAST, Spell, spell

REASONS = ("none_correct", "all_correct", "unavailable", "not_selected")
EQUAL = "equal"
"""Reason why a group has no signal: its rewards are equal, and it is unknown whether its episodes are right (as in logs
of other trainers)."""
_ALMOST = 0.95
_DIFFERING, _PART = 6, 0.25
"""The selector is judged only if, over ``LEAST`` steps, at least ``_DIFFERING`` groups have unequal rewards, and these
groups are at least the share ``_PART`` of all groups."""
_WINDOW = 10
_FEW, _VERY_FEW = 0.3, 0.2


def signal_shares(run: RunRecord) -> list[tuple[int, Mapping[str, float], float]]:
    """Return the number of each step, and counts of its groups: without a signal, by reason; and with a signal.

    A group has a signal if not all of its advantages are 0. For the log of another trainer, shares of the groups
    replace the counts.
    """
    found: list[tuple[int, Mapping[str, float], float]] = []
    for step in run.steps:
        figures = step.figures
        if "groups/signal" in figures:
            reasons = {reason: figures.get(f"groups/{reason}", 0.0) for reason in (*REASONS, EQUAL)}
            found.append((step.number, reasons, figures["groups/signal"]))
        elif "groups/equal_share" in figures:  # from another trainer, which does not record the reasons
            equal = figures["groups/equal_share"]
            found.append((step.number, {EQUAL: equal}, 1.0 - equal))
    return found


def _points(run: RunRecord, reason: str) -> list[FigurePoint]:
    """Return, for each step, the share of its groups that are without a signal for the given reason."""
    if reason == "not_selected" and any(step.once("groups/rejected", _rejected) for step in run.steps):
        return _rejected_shares(run)
    return [
        (step, reasons.get(reason, 0.0) / total)
        for step, reasons, signal in signal_shares(run)
        if (total := signal + sum(reasons.values())) > 0
    ]


def _rejected(step: StepData) -> tuple[int, int, int] | None:
    """Return three counts for a step: all groups, groups with unequal rewards, and rejected groups.

    A group is rejected if its rewards are unequal, but none of its episodes was kept. The result is ``None`` if the
    step has no groups.
    """
    groups = step.groups()
    differing = [group for group in groups if len({one.reward for one in group}) > 1]
    rejected = sum(not any(one.kept for one in group) for group in differing)
    return (len(groups), len(differing), rejected) if groups else None


def _rejected_shares(run: RunRecord) -> list[FigurePoint]:
    """Return, for each step, the share of the groups with unequal rewards from which no episode was kept.

    A step is left out unless it is among ``LEAST`` consecutive steps with enough such groups.
    """
    known = [(step.number, counts) for step in run.steps if (counts := step.once("groups/rejected", _rejected))]
    found: dict[int, float] = {}
    for stop in range(LEAST, len(known) + 1):
        window = known[stop - LEAST : stop]
        groups, differing, _ = (sum(each) for each in zip(*(counts for _, counts in window), strict=True))
        if differing >= max(_DIFFERING, _PART * groups):
            found |= {step: counts[2] / counts[1] for step, counts in window if counts[1]}
    return list(found.items())


def _all(
    reason: str, says: str, shows: Callable[[EpisodeDigest], bool] = lambda episode: True
) -> Callable[[RunRecord], Evidence | None]:
    def look(run: RunRecord) -> Evidence | None:
        found = spell(_points(run, reason), lambda share: share >= _ALMOST)
        if found is None:
            return None
        return Evidence(
            since=found.since,
            until=found.until,
            says=f"In {len(found.values)} consecutive steps, {100 * found.mean:.0f} % of the groups {says}.",
            figures={f"groups/{reason}": found.mean},
            episodes=run.examples(found.since, found.until, shows),
        )

    return look


def _few(run: RunRecord) -> Evidence | None:
    shares = [
        (step, signal, signal + sum(reasons.values()), max(reasons, key=lambda name: reasons[name]))
        for step, reasons, signal in signal_shares(run)
    ]
    pooled = []
    for stop in range(_WINDOW, len(shares) + 1):
        window = shares[stop - _WINDOW : stop]
        total = sum(one[2] for one in window)
        if total:
            pooled.append((window[-1][0], sum(one[1] for one in window) / total))
    found = spell(pooled, lambda share: share < _FEW)
    if found is None:
        return None
    nothing = max(found.values) <= 1 - _ALMOST
    if nothing and _is_explained(run, found):
        return None
    own = [one for one in shares if found.until is None or one[0] <= found.until][-_WINDOW:]
    most = [one[3] for one in own]
    main = max(set(most), key=most.count)
    words = {
        "none_correct": "no correct episode",
        "all_correct": "only correct episodes",
        "unavailable": "no available episode",
        "not_selected": "the selector, or equal rewards of right and wrong episodes",
        EQUAL: "equal rewards",
    }[main]
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.last:.0f} % of the groups of {len(own)} steps have a signal to learn from; the most "
        f"frequent reason of the others: {words}.",
        figures={"share with a signal": found.last, "lowest share with a signal": min(found.values)},
        episodes=run.examples(found.since, found.until, lambda episode: episode.reason == "equal"),
        severity="error" if nothing else "warning" if found.last < _VERY_FEW else "note",
        akin={"none_correct": ("all_wrong",), "all_correct": ("all_right",), EQUAL: ("all_right", "all_wrong")}.get(
            main, ()
        ),
    )


def _is_explained(run: RunRecord, found: Spell) -> bool:
    """Whether another check reports, from the start of this spell or earlier, why groups have no signal."""
    reasons = {reason for _, each, _ in signal_shares(run) for reason in each} & {*REASONS}
    spells = (spell(_points(run, reason), lambda share: share >= _ALMOST) for reason in reasons)
    others = (*spells, constant_reward(run))
    return any(one is not None and one.since <= found.since for one in others)


_NEEDS = ("groups/signal",)
_RULE = "in 3 consecutive steps, at least 95 % of the groups {}: almost nothing is learned"

register(
    RunCheck(
        name="all_wrong",
        title="No episode is right, so nothing is learned",
        looks_at="`groups/none_correct`",
        rule=_RULE.format("have no correct episode"),
        severity="error",
        cause="The problems are too hard for the model, or the model has not learned the format of answers.",
        change=(
            "rstar2 validate ENV",
            "rstar2 traces --env ENV --problems PROBLEMS --episodes 1000 --out traces.jsonl",
            "rstar2 sft --traces traces.jsonl --model MODEL",
            "--problems EASIER",
        ),
        otherwise="A grader that rejects right answers: compare `answer` and `gold` of the episodes.",
        needs=_NEEDS,
        look=_all("none_correct", "have no correct episode", lambda episode: not episode.correct),
        effects=("few_signals",),
    ),
    RunCheck(
        name="all_right",
        title="Every episode is right, so nothing is learned",
        looks_at="`groups/all_correct`",
        rule=_RULE.format("have only correct episodes"),
        severity="error",
        cause="The problems are too easy for the model.",
        change=("--problems HARDER", "--set sampler=curriculum", "rstar2 audit ENV"),
        otherwise="A grader that accepts everything, or, after a finding `learning_rate_high`, a policy that always "
        "gives the same answer.",
        needs=_NEEDS,
        look=_all("all_correct", "have only correct episodes"),
        effects=("few_signals",),
    ),
    RunCheck(
        name="all_rejected",
        title="The selector rejects every group",
        looks_at="the groups whose episodes have unequal rewards; in a run without recorded episodes, at "
        "`groups/not_selected`",
        rule="in 3 consecutive steps, the selector rejects at least 95 % of the groups with unequal rewards, which are "
        "at least 6 groups and at least a quarter of all groups: almost nothing is learned",
        severity="error",
        cause="A selector whose conditions no group meets, or that keeps only episodes with equal rewards.",
        change=("--set selector=all",),
        otherwise="Groups with equal rewards, which are counted under a separate reason.",
        needs=_NEEDS,
        look=_all("not_selected", "with unequal rewards were rejected by the selector"),
        effects=("few_signals",),
    ),
    RunCheck(
        name="all_unavailable",
        title="No episode can be played",
        looks_at="`groups/unavailable`",
        rule=_RULE.format("have no available episode"),
        severity="error",
        cause="The sandbox, the verifier or a server fails: `error` of the episodes gives the cause.",
        change=("rstar2 doctor", "rstar2 sandbox check"),
        otherwise="A limit of the machine on memory or processes, which ends the workers.",
        needs=_NEEDS,
        look=_all("unavailable", "could not be played", lambda episode: not episode.available),
        effects=("few_signals",),
    ),
    RunCheck(
        name="few_signals",
        title="Few groups have a signal",
        looks_at="`groups/signal` and the reasons of the other groups, pooled over 10 steps",
        rule="over 10 steps, fewer than 30 % of the groups have a signal (a note), or fewer than 20 % (a warning): a "
        "run in which at least 20 % of the groups have a signal is not faulty, but most of its rollout time is spent "
        "on the other groups",
        severity="note",
        cause="Problems that are too easy or too hard for the model at this stage.",
        change=("--set sampler=difficulty_pool", "--set rollout.refill=2", "--set rollout.group_size=MORE"),
        otherwise="The end of a run that has learned its problems: then most of the groups have only correct episodes.",
        needs=("groups/signal|groups/equal_share",),
        look=_few,
    ),
)
