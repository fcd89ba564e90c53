"""``Row``: an episode, or a part of it, as input of an optimizer step; plain numbers, without torch.

Covered: token ids, mask, log-probabilities and advantage of the row; for each token, its turn and the number of tool
calls before the turn. Not covered: padding and micro-batches, which the backend makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(slots=True)
class Row:
    """One row of a training batch.

    An episode is usually one row; a rollout part may split it into several, for example one row per turn, for chat
    templates that rewrite earlier turns. ``completion_ids``, ``mask`` and ``logprobs`` are equally long.

    Attributes:
        episode: The episode that the row was built from.
        prompt_ids: Token ids before the first token that may be trained on.
        completion_ids: Token ids after the prompt, including the environment's.
        mask: 1 on the policy's tokens, 0 on the environment's.
        logprobs: Log-probability of each of the policy's tokens when it was drawn; 0 on the environment's.
        advantage: The advantage: one number, or one for each token of the completion.
        columns: Further numbers that a loss term reads, by name; one number, or one for each token of the completion.
            In a run every row has ``accuracy``, the share of correct episodes in its group; ``correct``, 1 if its
            episode is correct; and ``off_policy``, 1 if ``Episode.off_policy``.
        start: Position in ``episode.completion_ids`` of the row's first completion token; more than 0 in a row that
            holds only later turns of the episode.
        copy: 0 for a row of an original group; for a row of a copy of its group, the number of the copy, from 1. Copies
            replace missing groups.
    """

    episode: Episode
    prompt_ids: list[int]
    completion_ids: list[int]
    mask: list[int]
    logprobs: list[float]
    advantage: float | FloatArray = 0.0
    columns: dict[str, float | FloatArray] = field(default_factory=dict)
    start: int = 0
    copy: int = 0

    @classmethod
    def of(cls, episode: Episode, advantage: float | FloatArray) -> Row:
        """Build one row from a whole episode; the row shares the episode's lists."""
        return cls(
            episode, episode.prompt_ids, episode.completion_ids, episode.mask, episode.logprobs, advantage=advantage
        )

    @property
    def group(self) -> int:
        """Number of the row's group; a group and each of its copies have different numbers."""
        return self.episode.group + (self.copy << 32)

    @property
    def policy_tokens(self) -> int:
        """Number of tokens that the policy wrote in this row."""
        return sum(self.mask)

    @property
    def environment_tokens(self) -> int:
        """Number of completion tokens that the environment wrote."""
        return int(np.count_nonzero(self.answered_of() >= 0))

    @property
    def ids(self) -> list[int]:
        """Token ids of the prompt and the completion."""
        return [*self.prompt_ids, *self.completion_ids]

    @property
    def tokens(self) -> int:
        """Number of tokens of the prompt and the completion."""
        return len(self.prompt_ids) + len(self.completion_ids)

    @property
    def trains(self) -> bool:
        """Whether any token of the policy has a nonzero advantage."""
        if isinstance(self.advantage, np.ndarray):
            return bool(np.any(self.advantage[np.asarray(self.mask, dtype=bool)]))
        return self.advantage != 0 and any(self.mask)

    def turn_of(self) -> IntArray:
        """Return the index of the turn (from 0) that each completion token is in; -1 on the environment's tokens.

        Returns:
            Whole numbers, shape (completion tokens,).
        """
        return self._spread(range(len(self.episode.steps)))

    def depth_of(self) -> IntArray:
        """Return, for each policy token, the number of tool calls in earlier turns; -1 on the environment's tokens.

        Returns:
            Whole numbers, shape (completion tokens,).
        """
        calls = [0, *np.cumsum([len(turn.statuses) for turn in self.episode.steps])]
        return self._spread(calls[:-1])

    def answered_of(self) -> IntArray:
        """Return, for each environment token, the number of calls that its message answers; -1 for policy tokens.

        These calls are in the turn before the token. Calls that an injected fault answered are not counted, so the
        number may be 0. Policy tokens whose mask is 0 in this row also get -1.

        Returns:
            Whole numbers, shape (completion tokens,).
        """
        found = np.zeros(len(self.completion_ids), dtype=np.int64)
        for turn in self.episode.steps:
            found[max(0, turn.stop - self.start) :] = len(turn.statuses)
        for turn in self.episode.steps:
            found[max(0, turn.start - self.start) : max(0, turn.stop - self.start)] = -1
        found[np.asarray(self.mask, dtype=np.int64) == 1] = -1
        return found

    def _spread(self, values: Sequence[int]) -> IntArray:
        """Assign each turn's value to the policy's tokens of that turn, and -1 to all other tokens."""
        found = np.full(len(self.completion_ids), -1, dtype=np.int64)
        for turn, value in zip(self.episode.steps, values, strict=True):
            found[max(0, turn.start - self.start) : max(0, turn.stop - self.start)] = value
        found[np.asarray(self.mask, dtype=np.int64) == 0] = -1
        return found
