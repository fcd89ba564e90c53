"""``entropy_branching``: branches episodes at turns at which the policy is uncertain: ARPO (arXiv 2507.19849).

M of the N episodes of a group are played from the start. After each answer of the environment,

    P = probability + weight (H_t - H_0);   the episode branches if P > threshold,

where H_t is the entropy at the start of a turn and H_0 the entropy at the start of the first turn; every branch may
branch again. The paper uses N = 16 and M = 8 (12 and 6 for 14B), 2 paths at a point, weight 0.2, probability 0.5; H is
computed over the 10 most likely candidates of the first 20 tokens (``Turn.entropy``). If the paper and its released
code differ, the defaults follow the paper: H_t belongs to the turn after the environment's answer, and P is compared
with a threshold. The released code uses the turn before that answer (``of="before"``) and branches with probability
clip(P, 0, 1) (``decide="draw"``). The threshold 0.5 is this package's choice: an episode branches if the policy is less
certain than in the first turn. A group always has N episodes: free places are filled with episodes from the start. An
episode that the environment cannot repeat is not branched.
"""

# This module is longer than most parts because it plays in rounds, and limits the branches of each round by the room
# in the group.

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import BranchError
from rstar2_env.core.manner import Manner
from rstar2_env.core.options.declare import CheckedOptions, option

from ..samplers.base import Start
from .base import ROLLOUTS, Play, Rollout, at_once

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Path:
    """An episode of a group and its key, which seeds the draws for its branches."""

    episode: Episode
    key: tuple[int, ...]


@dataclass(frozen=True)
class EntropyBranching(CheckedOptions, Rollout):
    """Branch an episode before turns with a higher entropy than its first turn: ARPO (arXiv 2507.19849).

    Use this part for episodes of several turns, in environments that are deterministic for the same seed and actions.

    Args:
        initial: Number of episodes of a group that are played from the first turn (M); ``None`` means half of the
            group.
        beam: Number of paths that continue from a branching point: the episode and its branches.
        probability: Branching probability P of a turn whose entropy equals that of the first turn.
        weight: Increase of P for one unit of entropy; the released code uses 0.5 by default.
        decide: ``"threshold"`` branches if P is above ``threshold``, as in the paper; ``"draw"`` branches with
            probability P, as in the released code.
        threshold: Threshold of P.
        of: The turn whose entropy is used: ``"after"`` the environment's answer, as in the paper, or ``"before"`` it,
            as in the released code.
        candidates: Number of the most likely tokens over which the entropy is computed; the engine must report them.
        tokens: Number of tokens at the start of a turn over which the entropy is computed.
    """

    initial: int | None = option(None, least=1)
    beam: int = option(2, least=2)
    probability: float = option(0.5, least=0, most=1)
    weight: float = option(0.2, least=0)
    decide: Literal["threshold", "draw"] = "threshold"
    threshold: float = option(0.5, least=0, most=1)
    of: Literal["before", "after"] = "after"
    candidates: int = option(10, least=1)
    tokens: int = option(20, least=1)

    @property
    def manner(self) -> Manner:
        """Playing options that the part's episodes need; see ``Rollout``."""
        return Manner(candidates=self.candidates, measured_tokens=self.tokens)

    def chance(self, episode: Episode, turn: int) -> float:
        """Return P, the branching probability after a turn that is not the last, from 0 to 1.

        Args:
            episode: The episode.
            turn: Index of the turn, from 0.
        """
        first, this = episode.steps[0].entropy, episode.steps[turn + (self.of == "after")].entropy
        change = 0.0 if first is None or this is None else this - first
        return min(1.0, max(0.0, self.probability + self.weight * change))

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; see ``Rollout``."""

        async def fresh(members: range) -> list[Episode]:
            playing = (play.episode(start, group=number, member=one, manner=self.manner) for one in members)
            return await at_once(playing)

        initial = min(size, self.initial or -(-size // 2))
        paths = [_Path(episode, (member,)) for member, episode in enumerate(await fresh(range(initial)))]
        turn = 0
        while len(paths) < size and any(_has_next(path.episode, turn) for path in paths):
            wanted = self._wanted(number, paths, turn, size - len(paths), play)
            for one in await at_once(self._branches(path, turn, count, play) for path, count in wanted):
                paths += one
            turn += 1
        return [path.episode for path in paths] + await fresh(range(initial, initial + size - len(paths)))

    def _wanted(self, group: int, paths: Sequence[_Path], turn: int, room: int, play: Play) -> list[tuple[_Path, int]]:
        """Return the paths that branch after a turn, with their numbers of branches; older paths come first.

        All paths together get at most ``room`` branches.
        """
        found = []
        for path in paths:
            if not _has_next(path.episode, turn):
                continue
            chance, limit = self.chance(path.episode, turn), np.full(self.beam - 1, self.threshold)
            if self.decide == "draw":
                limit = play.draws(group, *path.key, turn).random(self.beam - 1)
            count = min(room, int((limit < chance).sum()))
            room -= count
            if count:
                found.append((path, count))
        return found

    async def _branches(self, path: _Path, turn: int, count: int, play: Play) -> list[_Path]:
        token = path.episode.steps[turn + 1].start
        try:
            grown = await play.branch(path.episode, token, count, manner=self.manner)
        except BranchError as error:
            _log.warning(
                "An episode could not be continued from its middle; another episode is played from the start "
                "instead: %s",
                error,
            )
            return []
        return [_Path(child, (*path.key, token, index)) for index, child in enumerate(grown)]


def _has_next(episode: Episode, turn: int) -> bool:
    """Return whether a turn is followed by another one."""
    return episode.available and turn + 1 < len(episode.steps)


ROLLOUTS.register("entropy_branching", EntropyBranching)
