"""Episodes for tests of advantages, written as their turns, and the advantages that a part gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.parts import make_part
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.trainers.advantages.base import ADVANTAGES, check_advantages
from rstar2_env.trainers.ranks import ONE, Ranks

EXACT = "eps=1e-12"
"""For numbers that were computed without an epsilon."""


@dataclass(frozen=True)
class Said:
    """A turn: how many tokens the policy wrote, how many it was shown then, what it earned, how its calls went."""

    tokens: int = 1
    shown: int = 1
    reward: float = 0.0
    statuses: Sequence[str] = ()
    seen: str = ""


def episode(
    *turns: Said,
    reward: float | None = None,
    correct: bool | None = None,
    task: str = "",
    rewards: Mapping[str, float] | None = None,
    ids: Sequence[int] = (),
    parent: tuple[int, int] | None = None,
) -> Episode:
    """An episode of these turns; its reward is theirs, unless a trainer's components gave another."""
    made = Episode(end="answered", task=task, rewards=dict(rewards or {}), parent=parent)
    for turn in turns:
        start = len(made.completion_ids)
        statuses = [ToolStatus(status) for status in turn.statuses]
        made.steps.append(Turn(start, start + turn.tokens, turn.seen, turn.reward, statuses))
        made.completion_ids += range(start, start + turn.tokens + turn.shown)
        made.mask += [1] * turn.tokens + [0] * turn.shown
        made.logprobs += [-1.0] * turn.tokens + [0.0] * turn.shown
        made.statuses += statuses
    made.turns = len(turns)
    made.completion_ids[: len(ids)] = ids
    made.reward = sum(turn.reward for turn in turns) if reward is None else reward
    made.correct = made.reward > 0 if correct is None else correct
    return made


def plain(*rewards: float, tokens: Sequence[int] = ()) -> list[Episode]:
    """A group of episodes of one turn, as long as ``tokens`` says, else of three tokens."""
    lengths = tokens or [3] * len(rewards)
    return [episode(Said(length, 0, reward)) for reward, length in zip(rewards, lengths, strict=True)]


def advantages(part: Any, *groups: Sequence[Episode], ranks: Ranks = ONE) -> list[list[Any]]:
    """What a part, by name with options, gives to the episodes of the groups; checked as the collector checks it."""
    made = make_part(ADVANTAGES, part) if isinstance(part, str) else part
    values = made(groups, ranks)
    check_advantages(made, groups, values)
    return values


def of_tokens(values: Sequence[Any], group: Sequence[Episode]) -> list[NDArray[np.float64]]:
    """The advantages of the policy's tokens of each episode, one array each."""
    return [
        np.full(len(one.completion_ids), value)[np.array(one.mask, dtype=bool)]
        for value, one in zip(values, group, strict=True)
    ]
