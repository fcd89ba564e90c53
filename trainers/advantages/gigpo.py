"""``gigpo``: compares episodes within their group, and turns that start in the same state: GiGPO (arXiv 2505.10978).

A_t = A_E + omega A_S. A_E is the reward of the episode minus the mean of its group. A_S is the discounted return of the
turn, the sum of gamma^k r_(t+k), minus the mean over all turns of the group that started in the same state, its anchor;
it is 0 for a turn with a unique anchor. With ``normalize``, both are divided by their deviations. The paper uses groups
of 8 and KL 0.01, and subtracts 0.1 from the reward of an invalid action. Use it for long episodes in which states
recur, such as games and web pages; with omega 0 it equals ``group_mean`` or ``group_norm``. This module is longer than
most parts because turns are matched to their anchors, exactly or by similarity.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option

from .anchors import ANCHORS, Anchor
from .base import ADVANTAGES, FloatArray, GroupAdvantage, centred, deviation, rewards
from .call_penalty import did_not_run
from .tokens import on_turns, turn_rewards


@dataclass(frozen=True)
class Gigpo(GroupAdvantage):
    """The episode's reward relative to its group, plus omega times the turn's return relative to its state: GiGPO.

    See the module for the formula (arXiv 2505.10978).

    Args:
        omega: Weight of the turns' advantages.
        gamma: Discount for each turn.
        normalize: Divide by the deviations; the released code does not by default.
        over: Compute mean and deviation of the rewards over ``"episodes"``, as in the paper, or over ``"turns"``, which
            gives long episodes more weight, as in the released code.
        anchor: Defines the state of a turn: ``"observation"``, the last observation; ``"history"``, all observations;
            or your own function of (episode, turn), as ``./mine.py:name``.
        similarity: Minimum similarity of two texts that count as the same state; 1 requires equal texts. The released
            code uses 0.95, and 0.9 for search.
        invalid: Penalty subtracted from the reward of a turn with a call that did not run.
        eps: Added to the deviations.
    """

    omega: float = option(1.0, least=0)
    gamma: float = option(0.95, above=0, most=1)
    normalize: bool = False
    over: Literal["episodes", "turns"] = "episodes"
    anchor: Any = "observation"
    similarity: float = option(1.0, above=0, most=1)
    invalid: float = option(0.1, least=0)
    eps: float = option(1e-4, least=0)
    _anchor: Anchor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Look up the anchor.

        Raises:
            UnknownNameError: The anchor does not exist.
        """
        super().__post_init__()
        found: Anchor = ANCHORS.get(self.anchor) if isinstance(self.anchor, str) else self.anchor
        object.__setattr__(self, "_anchor", found)

    def estimate(self, group: Sequence[Episode]) -> Sequence[float | FloatArray]:
        """See ``GroupAdvantage``."""
        if not group:
            return []
        counts = np.array([len(episode.steps) if self.over == "turns" else 1 for episode in group], dtype=np.intp)
        each = np.repeat(np.arange(len(group)), counts)
        whole = np.zeros(len(group))
        whole[each] = self._relative(rewards(group)[each])
        if not self.omega:
            return list(whole)
        turns = np.concatenate([np.zeros(0), *(self._returns(episode) for episode in group)])
        states = [self._anchor(episode, turn) for episode in group for turn in range(len(episode.steps))]
        steps = np.zeros(len(turns))
        for places in _same(states, self.similarity):
            steps[places] = self._relative(turns[places])
        ends = np.cumsum([len(episode.steps) for episode in group])[:-1]
        return [
            on_turns(value + self.omega * own, episode)
            for episode, value, own in zip(group, whole, np.split(steps, ends), strict=True)
        ]

    def _returns(self, episode: Episode) -> FloatArray:
        earned = turn_rewards(episode)
        for turn, step in enumerate(episode.steps):
            earned[turn] -= self.invalid * any(map(did_not_run, step.statuses))
        for turn in reversed(range(len(earned) - 1)):
            earned[turn] += self.gamma * earned[turn + 1]
        return earned

    def _relative(self, values: FloatArray) -> FloatArray:
        own = centred(values)
        return own / (deviation(values) + self.eps) if self.normalize and own.any() else own


def _same(states: Sequence[str], similarity: float) -> list[list[int]]:
    """Return groups of positions in ``states``; the states of a group are equal, or similar enough."""
    leaders: dict[str, str] = {}
    for state in sorted(set(states)):  # sorted, so that the order of the episodes does not matter
        led = {} if similarity == 1 else dict.fromkeys(leaders.values())
        leaders[state] = next((other for other in led if _alike(state, other, similarity)), state)
    found: dict[str, list[int]] = {}
    for place, state in enumerate(states):
        found.setdefault(leaders[state], []).append(place)
    return list(found.values())


def _alike(one: str, other: str, similarity: float) -> bool:
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return matcher.quick_ratio() >= similarity and matcher.ratio() >= similarity


ADVANTAGES.register("gigpo", Gigpo)
