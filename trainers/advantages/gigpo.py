"""``gigpo``: compares episodes within their group, and turns that start in the same state: GiGPO (arXiv 2505.10978).

A_t = A_E + omega A_S. A_E is the reward of the episode minus the mean of its group. A_S is the discounted return of the
turn, the sum of gamma^k r_(t+k), minus the mean over all turns of the group that started in the same state (anchor);
it is 0 for a turn with a unique anchor. With ``normalize``, A_E and A_S are divided by their deviations. The paper uses
groups of 8 and KL 0.01, and subtracts 0.1 from the reward of an invalid action. Use it for long episodes in which
states recur, such as games and web pages; with omega 0 it equals ``group_mean`` or ``group_norm``.

The means include the episode's own rewards. The number of turns that share a state depends on the policy's own choices,
so A_S is biased. With ``baseline="others"``, both means are over the other episodes of the group, and 0 if no other
episode has a turn in the state. With gamma 1, ``similarity=1`` and no penalty, the expected update is 1 + omega times
the gradient; with a lower ``similarity``, later states of an episode can change the baseline of its earlier turns.
"""

# This module is longer than most parts because turns are matched to their anchors, exactly or by similarity.

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option

from .anchors import ANCHORS, Anchor
from .base import ADVANTAGES, FloatArray, GroupAdvantage, deviation, rewards, without_rounding
from .call_penalty import did_not_run
from .tokens import on_turns, turn_rewards


@dataclass(frozen=True)
class Gigpo(GroupAdvantage):
    r"""$A_E + \omega A_S$: advantage of the episode in its group, plus advantage of the turn among turns in one state.

    This is GiGPO (arXiv 2505.10978). $A_E$ is the reward of the episode minus the mean of its group. $A_S$ is the
    discounted return of the turn, $\sum_{k \ge 0} \gamma^k r_{t + k}$, minus the mean over all turns of the group that
    started in the same state.

    Args:
        omega: Weight of the turns' advantages.
        gamma: Discount for each turn.
        normalize: Divide by the deviations; the released code does not by default.
        over: Whether the mean and deviation of the rewards are over ``"episodes"``, as in the paper, or over
            ``"turns"``, as in the released code, so that long episodes have more weight.
        anchor: Defines the state of a turn: ``"observation"``, the last observation; ``"history"``, all observations;
            or your own function of (episode, turn), as ``./mine.py:name``.
        similarity: Minimum similarity of two texts that count as the same state; 1 requires equal texts. The released
            code uses 0.95, and 0.9 for search.
        baseline: Episodes whose mean is subtracted: ``"all"`` episodes of the group, as in the paper, or ``"others"``,
            all except this episode; ``"others"`` cannot be combined with ``normalize``.
        invalid: Penalty of a turn with a call that did not run. As in the released code, it is subtracted from the
            turn's discounted return and, only for the tokens of this turn, from the reward of the episode.
        eps: Added to the deviations.
    """

    omega: float = option(1.0, least=0)
    gamma: float = option(0.95, above=0, most=1)
    normalize: bool = False
    over: Literal["episodes", "turns"] = "episodes"
    anchor: Any = "observation"
    similarity: float = option(1.0, above=0, most=1)
    baseline: Literal["all", "others"] = "all"
    invalid: float = option(0.1, least=0)
    eps: float = option(1e-4, least=0)
    _anchor: Anchor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options and look up the anchor.

        Raises:
            ConfigurationError: ``baseline="others"`` with ``normalize``.
            UnknownNameError: The anchor does not exist.
        """
        super().__post_init__()
        if self.baseline == "others" and self.normalize:
            raise ConfigurationError(
                "The options baseline=others and normalize=true exclude each other: if only one turn starts in a "
                "state, baseline=others subtracts 0, and the deviation by which normalize=true divides is 0. Remove "
                "one of them.",
                option="normalize",
            )
        found: Anchor = ANCHORS.get(self.anchor) if isinstance(self.anchor, str) else self.anchor
        object.__setattr__(self, "_anchor", found)

    def estimate(self, group: Sequence[Episode]) -> Sequence[float | FloatArray]:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        penalties = [self._penalties(episode) for episode in group]
        whole = self._of_episodes(group, penalties)
        if not self.omega:
            return whole
        returns = [self._returns(episode, own) for episode, own in zip(group, penalties, strict=True)]
        turns = np.concatenate([np.zeros(0), *returns])
        states = [self._anchor(episode, turn) for episode in group for turn in range(len(episode.steps))]
        numbers = np.repeat(np.arange(len(group)), [len(episode.steps) for episode in group])
        steps = np.zeros(len(turns))
        for places in _same(states, self.similarity):
            among, of = turns[places], numbers[places]
            steps[places] = self._relative(among, self._baselines(among, of, len(group))[of], among)
        ends = np.cumsum([len(episode.steps) for episode in group])[:-1]
        parts = np.split(steps, ends) if len(group) else []
        return [
            value + on_turns(self.omega * own, episode)
            if np.ndim(value)
            else on_turns(value + self.omega * own, episode)
            for episode, value, own in zip(group, whole, parts, strict=True)
        ]

    def _of_episodes(self, group: Sequence[Episode], penalties: Sequence[FloatArray]) -> list[float | FloatArray]:
        """Return A_E, the advantage of each episode in its group; one number per token if turns are penalized."""
        earned = rewards(group)
        scores = [
            reward - own if len(own) else np.array([reward]) for reward, own in zip(earned, penalties, strict=True)
        ]
        if self.over == "turns":
            counted = [one if len(own) else one[:0] for one, own in zip(scores, penalties, strict=True)]
        else:
            counted = [one.mean(keepdims=True) for one in scores]
        among, numbers = np.concatenate([np.zeros(0), *counted]), np.arange(len(group))
        baselines = self._baselines(among, np.repeat(numbers, [len(one) for one in counted]), len(group))
        if not any(own.any() for own in penalties):
            return list(self._relative(earned, baselines, among))
        lengths = [len(one) for one in scores]
        relative = self._relative(np.concatenate(scores), np.repeat(baselines, lengths), among)
        values = np.split(relative, np.cumsum(lengths)[:-1])
        return [on_turns(own, episode) if episode.steps else own[0] for own, episode in zip(values, group, strict=True)]

    def _penalties(self, episode: Episode) -> FloatArray:
        """Return the penalty of each turn, shape (turns,)."""
        return self.invalid * np.array(
            [any(map(did_not_run, turn.statuses)) for turn in episode.steps], dtype=np.float64
        )

    def _returns(self, episode: Episode, penalties: FloatArray) -> FloatArray:
        earned = turn_rewards(episode)
        for turn in reversed(range(len(earned) - 1)):
            earned[turn] += self.gamma * earned[turn + 1]
        return earned - penalties

    def _baselines(self, values: FloatArray, numbers: np.ndarray, episodes: int) -> FloatArray:
        """Return the mean that is subtracted from each episode's values, (episodes,); 0 for a mean without values.

        Args:
            values: Rewards of episodes, or returns of turns.
            numbers: For each value, the index of its episode.
            episodes: Number of episodes.
        """
        if self.baseline == "all":
            return np.full(episodes, values.mean() if len(values) else 0.0)
        totals, counts = np.bincount(numbers, values, episodes), np.bincount(numbers, minlength=episodes)
        found: FloatArray = (totals.sum() - totals) / np.maximum(counts.sum() - counts, 1)
        return np.where(counts.sum() > counts, found, 0.0)

    def _relative(self, values: FloatArray, baselines: FloatArray, among: FloatArray) -> FloatArray:
        """Subtract a baseline from each value; with ``normalize``, divide by the deviation of ``among``.

        The result is exactly 0 for values that equal their baseline up to rounding.
        """
        own = without_rounding(values - baselines, np.concatenate([values, among]))
        return own / (deviation(among) + self.eps) if self.normalize and own.any() else own


def _same(states: Sequence[str], similarity: float) -> list[list[int]]:
    """Divide the positions in ``states`` into groups with similar texts (``similarity`` 1: with equal texts)."""
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
