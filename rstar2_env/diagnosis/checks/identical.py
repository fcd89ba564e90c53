"""Check for groups whose episodes are all identical, so that their rewards cannot differ."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData
from rstar2_env.diagnosis.spells import each_step, spell

_SHARE, _LEAST, _PART = 0.9, 6, 0.25
_COLD = 0.3
_EFFECTS = ("all_right", "all_wrong", "few_signals")
_LONG = 30
"""A group of identical right episodes is compared only if each has at least this number of tokens: the right answer to
an easy problem may be a single number."""


def is_cold(run: RunRecord) -> bool:
    """Whether the temperature of a run is so low that sampling is almost greedy."""
    return float(run.option("rollout.temperature", 1.0)) < _COLD


def _is_same(group: Sequence[EpisodeDigest]) -> bool:
    return len({(one.text, one.reward) for one in group}) == 1


def _compared(step: StepData) -> list[list[EpisodeDigest]]:
    """Return the groups with several episodes, except groups whose episodes are identical, right and short."""
    groups = [group for group in step.groups() if len(group) > 1 and all(one.text for one in group)]
    return [
        group
        for group in groups
        if not (_is_same(group) and all(one.correct for one in group) and group[0].tokens < _LONG)
    ]


def _counts(step: StepData) -> tuple[int, int, int]:
    """Return the counts of ``_compared`` groups with identical episodes, of ``_compared`` groups, and of all groups."""
    compared = _compared(step)
    return sum(map(_is_same, compared)), len(compared), len(step.groups())


def _share(step: StepData) -> float | None:
    """Return the share of the ``_compared`` groups whose episodes are identical; ``None`` if too few are compared."""
    same, compared, every = step.once("groups/compared", _counts)
    return same / compared if compared and compared >= _PART * every else None


def _look(run: RunRecord) -> Evidence | None:
    found = spell(each_step(run, "groups/identical", _share), lambda share: share >= _SHARE)
    if found is None:
        return None
    stop = run.last if found.until is None else found.until
    within = [step for step in run.steps if found.since <= step.number <= stop]
    if sum(step.once("groups/compared", _counts)[1] for step in within) < _LEAST:
        return None
    temperature = run.option("rollout.temperature")
    sampled = "" if temperature is None else f", sampled at temperature {float(temperature):g}"
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"In {len(found.values)} consecutive steps, all episodes of a group have the same text and reward in "
        f"{100 * found.mean:.0f} % of the groups{sampled}: these groups have no signal.",
        figures={"identical groups": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: bool(one.text)),
        effects=(*_EFFECTS, "entropy_collapsed") if is_cold(run) else None,
    )


register(
    RunCheck(
        name="episodes_identical",
        title="The episodes of a group are identical",
        looks_at="the texts of the policy in the episodes of a group",
        rule=f"in 3 consecutive steps, at least {100 * _SHARE:.0f} % of the compared groups have identical episodes. "
        f"Groups with identical right answers of fewer than {_LONG} tokens are not compared; at least {_LEAST} groups, "
        "and at least a quarter of all groups, must remain: an easy problem has one short answer, but longer sampled "
        "texts differ",
        severity="error",
        cause="Greedy or almost greedy sampling (a temperature near 0, or a top-k of 1), or an engine that samples "
        "each episode of a group with the same seed.",
        change=("--set rollout.temperature=1", "--set rollout.top_p=1 --set rollout.top_k=0"),
        otherwise="A policy that is certain of every token: see `entropy_collapsed`.",
        needs=("episodes",),
        look=_look,
        effects=_EFFECTS,
    ),
)
