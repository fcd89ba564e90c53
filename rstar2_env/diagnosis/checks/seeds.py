"""Check for two groups, or two processes, whose episodes are equal because they used the same random seed."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, FigurePoint, RunRecord, StepData
from rstar2_env.diagnosis.spells import spell

_SHARE, _LEAST = 0.25, 3


def _signature(group: Sequence[EpisodeDigest]) -> tuple[object, ...]:
    return (group[0].problem, group[0].question, *sorted(one.text for one in group))


def _repeated(groups: Sequence[Sequence[EpisodeDigest]]) -> list[Sequence[EpisodeDigest]]:
    """Return the groups with exactly the texts of an earlier group; ignore groups whose own texts hardly differ."""
    seen: dict[tuple[object, ...], Sequence[EpisodeDigest]] = {}
    found = []
    for group in groups:
        # If all episodes are equal, they prove nothing: a policy that is certain always writes the same text.
        if len({one.text for one in group}) >= min(3, len(group)) and all(one.text for one in group):
            if _signature(group) in seen:
                found.append(group)
            seen.setdefault(_signature(group), group)
    return found


def _repeated_share(step: StepData) -> tuple[float | None, str]:
    """Return the share of groups with the same texts as another, and the key of an episode in such a group (or "")."""
    groups = [group for group in step.groups() if len(group) > 1]
    if len(groups) < 2:
        return None, ""
    repeated = _repeated(groups)
    return 2 * len(repeated) / len(groups), repeated[0][0].key if repeated else ""


def _look(run: RunRecord) -> Evidence | None:
    points: list[FigurePoint] = []
    shown: dict[int, str] = {}
    for step in run.steps:
        share, key = step.once("repeated groups", _repeated_share)
        if share is not None:
            points.append((step.number, share))
        if key:
            shown[step.number] = key
    found = spell(points, lambda share: share > _SHARE, _LEAST)
    if found is None:
        return None
    several = run.processes > 1
    where = "on different processes " if several else ""
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * min(1.0, found.mean):.0f} % of the groups {where}have the same problem and exactly the "
        f"same episodes as another group, over {len(found.values)} steps.",
        figures={"share of equal groups": found.mean},
        episodes=tuple(key for step, key in sorted(shown.items()) if step >= found.since)[:3],
    )


register(
    RunCheck(
        name="same_seeds",
        title="Groups repeat one another",
        looks_at="problems and texts of the groups of a step, over all processes",
        rule="more than 25 % of the groups have the problem and exactly the texts of another group, although the "
        "episodes within a group differ, in 3 consecutive steps: sampled texts agree only if their random numbers do",
        severity="error",
        cause="The same seed on two processes or servers, so that they do the same work.",
        change=("--set run.seed=SEED", "rstar2 doctor"),
        otherwise="Copies of groups that replace missing ones are not counted.",
        needs=("episodes",),
        look=_look,
    ),
)
