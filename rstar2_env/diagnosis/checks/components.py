"""Check for a component of the reward that is constant, such as a judge that always gives the same score."""

from __future__ import annotations

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord

_LEAST, _STEPS = 64, 3


def _parts(run: RunRecord) -> set[str]:
    return {name for step in run.steps for one in step.episodes for name in one.rewards}


def _look(run: RunRecord) -> Evidence | None:
    for name in sorted(_parts(run)):
        recent: list[EpisodeDigest] = []
        steps: list[int] = []
        for step in reversed(run.steps):
            own = [one for one in step.episodes if one.available and name in one.rewards]
            values = {round(one.rewards[name], 9) for one in [*recent, *own]}
            if len(values) > 1:
                break
            if own:
                recent += own
                steps.append(step.number)
        if len(recent) < _LEAST or len(steps) < _STEPS or len({one.correct for one in recent}) < 2:
            continue
        value = recent[0].rewards[name]
        return Evidence(
            min(steps),
            None,
            f"The component `{name}` of the reward is {value:g} for each of the last {len(recent)} episodes, right or "
            "wrong.",
            {f"reward/{name}": value},
            tuple(one.key for one in recent[:3]),
            "note" if value == 0 else None,
        )
    return None


register(
    RunCheck(
        name="judge_constant",
        title="A component of the reward is constant",
        looks_at="`rewards` of the episodes, by component, in runs with several components",
        rule="the same value in at least 64 right and wrong episodes of at least 3 steps: a judge that reads the "
        "episodes does not give all of them the same score",
        severity="warning",
        cause="A judge whose reply is not understood, so that its default counts, or a prompt without the episode.",
        change=("--set rollout.judge=model:url=URL,model=NAME", "--set reward=return"),
        otherwise="No episode has earned the penalty or the bonus, which is then 0: a constant of 0 is only a note.",
        needs=("episodes",),
        look=_look,
        applies=lambda run: len(_parts(run)) > 1,
    ),
)
