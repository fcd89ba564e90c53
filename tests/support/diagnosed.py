"""Records of runs for checks: a clean run, and the same run with a fault from a step on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.facts import digest
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData

CONFIG: dict[str, dict[str, Any]] = {
    "run": {"steps": 40},
    "rollout": {"temperature": 1.0, "max_staleness": 0, "wrappers": [], "tail": "wait"},
    "optim": {
        "learning_rate": 1e-6,
        "warmup_steps": 0,
        "max_grad_norm": 1.0,
        "updates_per_rollout": 2,
        "minibatches": 1,
    },
    "eval": {"temperature": None},
}
SINCE = 15
"""First step of a fault."""

Change = Callable[[EpisodeDigest, Random], EpisodeDigest]


def clean(
    steps: int = 40,
    groups: int = 8,
    size: int = 4,
    *,
    rate: float = 0.5,
    episode: Change = lambda one, draw: one,
    since: int = SINCE,
    config: Mapping[str, Mapping[str, Any]] | None = None,
    **figures: Callable[[int], float] | float,
) -> RunRecord:
    """A run that learns, with changes from a step on.

    Args:
        steps: Number of steps.
        groups: Groups of a step.
        size: Episodes of a group.
        rate: Pass rate.
        episode: Change of each episode from ``since`` on.
        since: First changed step.
        config: Options that differ, by group.
        **figures: Figures from ``since`` on, ``__`` for a slash: numbers, or functions of the step.
    """
    draw = Random(0)
    given = {name: {**CONFIG.get(name, {}), **(config or {}).get(name, {})} for name in {**CONFIG, **(config or {})}}
    run = RunRecord("run", "training", given, processes=1)
    for step in range(1, steps + 1):
        played = [_episode(step, group, member, rate, draw) for group in range(groups) for member in range(size)]
        if step >= since:
            played = [episode(one, draw) for one in played]
        own = _figures(step, played)
        if step >= since:
            own |= {
                name.replace("__", "/"): float(value(step) if callable(value) else value)
                for name, value in figures.items()
            }
        run.add(StepData(step, own, played))
    for step in range(0, steps + 1, 10):
        held_out = [_episode(step, 1000 + number, 0, rate, draw) for number in range(40)]
        run.evaluations.append(StepData(step, {"pass_rate": 0.5 + step / 400, "pass_rate_se": 0.03}, held_out))
    return run


def without(run: RunRecord, *names: str) -> RunRecord:
    """The run without some figures."""
    for step in run.steps:
        step.figures = {name: value for name, value in step.figures.items() if name not in names}
    return run


def _episode(step: int, group: int, member: int, rate: float, draw: Random) -> EpisodeDigest:
    problem = f"p{draw.randrange(400)}" if member == 0 else _episode.problem  # type: ignore[attr-defined]
    _episode.problem = problem  # type: ignore[attr-defined]
    if group >= 1000:
        problem = f"held-{group}"
    correct = draw.random() < rate
    status = ToolStatus.OK if draw.random() < 0.85 else draw.choice([ToolStatus.EXCEPTION, ToolStatus.SYNTAX_ERROR])
    return EpisodeDigest(
        key=f"train-{step}-{group * 100 + member}",
        step=step,
        group=group,
        problem=problem,
        question=digest(problem),
        task="sums",
        seed=step * 100 + group,
        kept=True,
        advantage=0.5 if correct else -0.5,
        reward=float(correct),
        rewards={"return": float(correct)},
        correct=correct,
        end="answered",
        turns=2,
        statuses=(status,),
        tokens=draw.randrange(80, 120),
        tags=1 if draw.random() < 0.8 else 0,
        repetition=0.1,
        text=f"{draw.random()}",
        verdict="equal" if correct else "different",
    )


def _figures(step: int, played: list[EpisodeDigest]) -> dict[str, float]:
    counted = [one for one in played if one.available] or played
    by_group: dict[int, list[EpisodeDigest]] = {}
    for one in played:
        by_group.setdefault(one.group, []).append(one)
    groups = {"signal": 0, "none_correct": 0, "all_correct": 0, "unavailable": 0, "not_selected": 0}
    for group in by_group.values():
        own = [one for one in group if one.available]
        if not own:
            groups["unavailable"] += 1
        elif len({one.reward for one in own}) > 1:
            groups["signal"] += 1
        else:
            groups["all_correct" if own[0].correct else "none_correct"] += 1
    number = len(counted)
    return {
        **{f"groups/{name}": float(count) for name, count in groups.items()},
        "rollout/pass_rate": sum(bool(one.correct) for one in counted) / number,
        "rollout/reward": sum(one.reward for one in counted) / number,
        "rollout/tokens": sum(one.tokens for one in counted) / number,
        "rollout/tool_calls": sum(len(one.statuses) for one in counted) / number,
        "rollout/episodes": float(number),
        "seconds/rollout": 2.0 + (step % 3) / 10,
        "seconds/tool": 0.2,
        "seconds/engine_wait": 0.1,
        "seconds/share_waiting": 0.1,
        "loss": 0.01,
        "grad_norm": 0.4 + (step % 5) / 10,
        "learning_rate": 1e-6,
        "tokens/trained": 4000.0,
        "weights/change": 2e-5,
        "optimizer/updates": float(step),
        "policy/entropy": 0.3,
        "policy/lag": 0.5,
        "policy/ratio": 1.0,
        "mismatch/logp_difference": 1e-5,
        "clip/low": 0.002,
        "clip/high": 0.004,
        "kl": 0.01,
        "mask/environment": 0.0,
        "mask/turn_ends": 1.0,
        "memory/process_gib": 2.0 + 0.01 * (step % 2),
    }


def change(**values: Any) -> Change:
    """A change that sets fields; functions get the episode."""

    def changed(one: EpisodeDigest, draw: Random) -> EpisodeDigest:
        return replace(one, **{name: value(one, draw) if callable(value) else value for name, value in values.items()})

    return changed
