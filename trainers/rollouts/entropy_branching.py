"""``entropy_branching``: episodes branch off others where their policy was undecided: ARPO (arXiv 2507.19849).

Of a group of N, M are played from the start. After each answer of the environment,

    P = probability + weight (H_t - H_0);   it branches where P > threshold,

where H_t is the entropy at the beginning of a turn and H_0 that of the first; every branch may branch again. N = 16,
M = 8 (12 and 6 for 14B), 2 paths at a point, weight 0.2, probability 0.5; H is over the 10 most likely of the first 20
tokens (``Turn.entropy``). Where the sources differ, the paper is the default: H_t is of the turn that the answer of the
environment is followed by, and P is compared. The released code takes the turn before that answer (``of="before"``) and
branches with probability clip(P, 0, 1) (``decide="draw"``). The threshold 0.5 is this package's: with it, an episode
branches where its policy is less decided than it was at first. Slots that are left over are filled with episodes from
the start. A group always has N; one that an environment cannot repeat is not branched. Longer than most parts, since
it plays in rounds: each turn's branches are wanted, counted against the room, and grown.
"""

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
from .base import ROLLOUTS, Play, at_once

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Path:
    """An episode of a group, and what tells it apart there."""

    episode: Episode
    words: tuple[int, ...]


@dataclass(frozen=True)
class EntropyBranching(CheckedOptions):
    """Branches where a turn begins more undecided than the first one did: ARPO (arXiv 2507.19849).

    Choose it for environments of several turns that repeat themselves for the same seed and actions.

    Args:
        initial: Episodes of a group that are played from the start (M); ``None`` is half of them.
        beam: Paths that go on from a place, the episode's own and its branches.
        probability: P where the entropy is that of the first turn.
        weight: How much one unit of entropy adds to P; the released code's own default is 0.5.
        decide: ``"threshold"`` branches where P is above ``threshold``, as in the paper; ``"draw"`` with probability P,
            as in the released code.
        threshold: What P must exceed.
        of: Whose entropy it is: of the turn ``"after"`` the environment's answer, as in the paper, or of the one
            ``"before"`` it, as in the released code.
        candidates: Number of the most likely tokens that the entropy is over; the engine must report them.
        tokens: Number of tokens at the beginning of a turn that it is over.
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
        """See ``PlaysIn``."""
        return Manner(candidates=self.candidates, measured_tokens=self.tokens)

    async def __call__(self, starts: Sequence[Start], size: int, play: Play) -> list[list[Episode]]:
        """See ``Rollout``."""
        return await at_once(self._group(number, one, size, play) for number, one in enumerate(starts))

    def chance(self, episode: Episode, turn: int) -> float:
        """P of a branch after a turn, which another one follows, from 0 to 1.

        Args:
            episode: The episode.
            turn: Number of the turn.
        """
        first, this = episode.steps[0].entropy, episode.steps[turn + (self.of == "after")].entropy
        change = 0.0 if first is None or this is None else this - first
        return min(1.0, max(0.0, self.probability + self.weight * change))

    async def _group(self, group: int, start: Start, size: int, play: Play) -> list[Episode]:
        async def fresh(members: range) -> list[Episode]:
            playing = (play.episode(start, group=group, member=one, manner=self.manner) for one in members)
            return await at_once(playing)

        initial = min(size, self.initial or -(-size // 2))
        paths = [_Path(episode, (member,)) for member, episode in enumerate(await fresh(range(initial)))]
        turn = 0
        while len(paths) < size and any(_goes_on(path.episode, turn) for path in paths):
            wanted = self._wanted(group, paths, turn, size - len(paths), play)
            for one in await at_once(self._branches(path, turn, count, play) for path, count in wanted):
                paths += one
            turn += 1
        return [path.episode for path in paths] + await fresh(range(initial, initial + size - len(paths)))

    def _wanted(self, group: int, paths: Sequence[_Path], turn: int, room: int, play: Play) -> list[tuple[_Path, int]]:
        """Which paths branch after a turn, and how often; those that were begun first have the first of the room."""
        found = []
        for path in paths:
            if not _goes_on(path.episode, turn):
                continue
            chance, limit = self.chance(path.episode, turn), np.full(self.beam - 1, self.threshold)
            if self.decide == "draw":
                limit = play.draws(group, *path.words, turn).random(self.beam - 1)
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
            _log.warning("An episode is not branched, and another is played from the start: %s", error)
            return []
        return [_Path(child, (*path.words, token, index)) for index, child in enumerate(grown)]


def _goes_on(episode: Episode, turn: int) -> bool:
    """Whether the environment answered a turn and the policy answered that."""
    return episode.available and turn + 1 < len(episode.steps)


ROLLOUTS.register("entropy_branching", EntropyBranching)
