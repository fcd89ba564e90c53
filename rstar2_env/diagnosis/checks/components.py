"""Check for a component of the reward that is constant, such as a judge that always gives the same score."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord, StepData

_LEAST, _STEPS, _SHOWN = 64, 3, 3
_JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class _Part:
    """A reward component in one step.

    Attributes:
        values: The distinct values of the component.
        first: Value of the component in the first episode that has it; 0 if no episode has it.
        correct: The distinct values of ``correct`` among the episodes that have the component.
        episodes: Number of episodes that have the component.
        keys: Keys of the first few of these episodes.
    """

    values: frozenset[float]
    first: float
    correct: frozenset[bool | None]
    episodes: int
    keys: tuple[str, ...]


def _of_step(step: StepData) -> dict[str, _Part]:
    found: dict[str, _Part] = {}
    for name in sorted({name for one in step.episodes for name in one.rewards}):
        own = [one for one in step.episodes if one.available and name in one.rewards]
        found[name] = _Part(
            frozenset(round(one.rewards[name], 9) for one in own),
            own[0].rewards[name] if own else 0.0,
            frozenset(one.correct for one in own),
            len(own),
            tuple(one.key for one in own[:_SHOWN]),
        )
    return found


def _parts(run: RunRecord) -> set[str]:
    return {name for step in run.steps for name in step.once("rewards", _of_step)}


def _look(run: RunRecord) -> Evidence | None:
    for name in sorted(_parts(run)):
        recent: list[tuple[int, _Part]] = []
        values: set[float] = set()
        for step in reversed(run.steps):
            part = step.once("rewards", _of_step).get(name)
            if part is None or not part.episodes:
                continue
            values |= part.values
            if len(values) > 1:
                break
            recent.append((step.number, part))
        episodes = sum(part.episodes for _, part in recent)
        verdicts = {one for _, part in recent for one in part.correct if one is not None}
        if episodes < _LEAST or len(recent) < _STEPS or len(verdicts) < 2:
            continue
        value = recent[0][1].first
        if value == 0 and run.option("rollout.judge") is None and _JUDGE not in name:
            continue  # a constant 0 may be a penalty or a bonus that no episode has earned
        return Evidence(
            since=recent[-1][0],
            until=None,
            says=f"The component `{name}` of the reward is {value:g} for each of the last {episodes} episodes, right "
            "or wrong.",
            figures={f"reward/{name}": value},
            episodes=recent[0][1].keys,
            severity="note" if value == 0 else None,
        )
    return None


register(
    RunCheck(
        name="judge_constant",
        title="A component of the reward is constant",
        looks_at="`rewards` of the episodes, by component, in runs with several components",
        rule="a component has the same value in at least 64 episodes of at least 3 steps, although some of these "
        "episodes are right and some are wrong: a judge that reads the episodes does not give all of them the same "
        "score; a constant 0 is reported only in a run with a judge (`rollout.judge`), or for a component whose name "
        "contains `judge`",
        severity="warning",
        cause="A judge whose reply cannot be parsed (a default score is used), or whose prompt lacks the episode.",
        change=("--set rollout.judge=model:url=URL,model=NAME", "--set reward=return"),
        otherwise="In a run with a judge, a penalty or a bonus that no episode has earned: a constant of 0 has the "
        "severity `note`.",
        needs=("episodes",),
        look=_look,
        applies=lambda run: len(_parts(run)) > 1,
    ),
)
