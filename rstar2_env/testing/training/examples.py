"""Example episodes for checks: groups with mixtures of rewards, calls, turns and failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.testing.training.lookup import samplers

_STATUSES = (ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.EMPTY, ToolStatus.TIMEOUT)


def episode(
    rng: np.random.Generator, reward: float, *, group: int = 0, end: str = "answered", problem: str = "sum"
) -> Episode:
    """Make an episode of one to three turns with calls between them, with policy and environment tokens.

    Args:
        rng: Draws the length, the tokens and the statuses of the episode.
        reward: Return of the episode; the episode counts as correct if its return is positive.
        group: Number of the group.
        end: End of the episode; ``unavailable`` and ``cancelled`` episodes are excluded from training.
        problem: Id of the problem.
    """
    turns = int(rng.integers(1, 4))
    made = Episode(group=group, seed=group, problem_id=problem, end=end, turns=turns, task="sums")
    made.messages.append(Message("user", "6 times 7?"))
    made.prompt_ids = [int(token) for token in rng.integers(3, 50, size=4)]
    for number in range(turns):
        last = number == turns - 1
        written, shown = int(rng.integers(1, 5)), 0 if last else int(rng.integers(1, 4))
        start = len(made.completion_ids)
        statuses = [] if last else [_STATUSES[int(rng.integers(len(_STATUSES)))]]
        made.completion_ids += [int(token) for token in rng.integers(3, 50, size=written + shown)]
        made.mask += [1] * written + [0] * shown
        made.logprobs += [float(value) for value in -rng.random(written)] + [0.0] * shown
        made.statuses += statuses
        seen = made.messages[-1].content
        made.steps.append(Turn(start, start + written, seen, reward if last else 0.0, statuses))
        made.messages.append(Message("assistant", "<answer>\\boxed{42}</answer>" if last else "<tool_call>"))
        if not last:
            made.messages.append(Message("user", "42"))
    # Measurements that a trainer would record: probabilities that fit the tokens, by a formula, not by random draws.
    made.measured["sum_squares"] = [
        float(np.exp(2 * p)) * (0.9 + 0.01 * (at % 7)) for at, p in enumerate(made.logprobs)
    ]
    made.measured["answer"] = [(1 + at) / (2 + turns) for at in range(turns)]
    made.answer, made.answer_tags = "42", 1
    if made.available:
        made.reward, made.correct = reward, reward > 0
    return made


def group_of(rewards: Sequence[float | str], seed: int = 0, number: int = 0) -> list[Episode]:
    """Make group ``number`` with these rewards; a str in place of a reward is the ``end`` of an excluded episode."""
    rng = np.random.default_rng([seed, number])
    return [
        episode(rng, 0.0, group=number, end=reward) if isinstance(reward, str) else episode(rng, reward, group=number)
        for reward in rewards
    ]


def outcomes_of(mixtures: Sequence[Sequence[float | str]], starts: Sequence[Any] | None = None) -> list[Any]:
    """Return the results of groups with these rewards, as a collector reports them.

    Args:
        mixtures: Rewards of each group; a str in place of a reward is the ``end`` of an excluded episode.
        starts: The start (problem and seed) of each group; by default starts with different problems.
    """
    found = []
    for number, mixture in enumerate(mixtures):
        start = starts[number] if starts else samplers.Start(number, {"problem_id": f"problem-{number}"})
        rewards = [reward for reward in mixture if not isinstance(reward, str)]
        deviation = float(np.std(rewards, ddof=1)) if len(rewards) > 1 else 0.0
        found.append(
            samplers.GroupResult(
                start=start,
                group=number,
                episodes=len(rewards),
                successes=sum(reward > 0 for reward in rewards),
                reward=float(np.mean(rewards)) if rewards else 0.0,
                advantage=deviation / 2,
                kept=len(rewards) if deviation else 0,
                task="sums",
                deviation=deviation,
                lengths=tuple(5 + 3 * at for at in range(len(rewards))),
                problem_id=start.problem_id,
            )
        )
    return found


MIXTURES: dict[str, tuple[float | str, ...]] = {
    "half right": (1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0),
    "one right": (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0),
    "one wrong": (1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0),
    "graded": (0.25, 1.0, 0.5, 0.0, 0.75, -0.5, 1.0, 0.1),
    "half unavailable": (1.0, "unavailable", 0.0, "unavailable", 1.0, "cancelled", 0.0, "unavailable"),
    "two": (0.0, 1.0),
    "all right": (1.0,) * 8,
    "all wrong": (0.0,) * 8,
    "all wrong or unavailable": (0.0, "unavailable", 0.0, "cancelled", 0.0, 0.0),
    "one available": ("unavailable", 1.0, "unavailable"),
    "none available": ("unavailable", "cancelled", "unavailable"),
    "empty": (),
}
"""For each case, by its description, the rewards of a group; a str is the ``end`` of an excluded episode."""
