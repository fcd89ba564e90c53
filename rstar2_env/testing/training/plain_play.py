"""``PlainPlay``: plays episodes for checks of rollouts, instantly and without a model, and records its calls."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.manner import OPEN, PLAIN, Manner
from rstar2_env.core.turn import Turn
from rstar2_env.problems import Problem
from rstar2_env.rewards.base import RewardJudge
from rstar2_env.testing.training.examples import episode

_PAUSES = 3


class PlainPlay:
    """The ``play`` argument of a rollout part, without a model.

    Args:
        seed: Seed of ``rng`` and, together with group and member, of each episode.
        failing: Positions (group, member) of episodes that end as ``unavailable``.
    """

    def __init__(self, seed: int = 0, failing: Sequence[tuple[int, int]] = ()) -> None:
        self.rng, self.step = np.random.default_rng(seed), 3
        self.judge: RewardJudge | None = None
        self._seed, self._failing = seed, set(failing)
        self.played: list[Episode] = []
        self.asked: list[tuple[int, int]] = []
        self.starts: dict[int, Any] = {}
        self.branched: Counter[tuple[int, int]] = Counter()
        self.in_flight = self.most_in_flight = self.cancelled = self.finished = 0

    def draws(self, group: int, *words: int) -> np.random.Generator:
        """Return a random generator of one group; different integers ``words`` give different generators."""
        return np.random.default_rng([self._seed, group, *words, 5])

    async def episode(
        self, start: Any, *, group: int, member: int, shown: str | None = None, manner: Manner = PLAIN
    ) -> Episode:
        """Play one episode, as ``Play.episode`` does; this takes a few cycles of the event loop."""
        self.starts[group] = start
        made = await self._made(group, member, start.problem_id)
        if not made.available and member % 2 == 0:
            # The episode's environment failed before the first turn.
            made.prompt_ids, made.completion_ids, made.mask, made.logprobs, made.steps = [], [], [], [], []
        if shown is not None and made.available:
            made.shown, made.shown_ids, made.source = shown, [1, *made.prompt_ids], "refined"
        self._record(made, manner, 0)
        return made

    async def reply(self, text: str, *, group: int, member: int, system: str = "") -> Episode:
        """Return an episode with one turn of meaningless text, instead of a model's reply to ``text``."""
        made = await self._made(group, member, "", 0.0)
        self.played.append(made)
        return made

    async def given(self, start: Any, turns: Sequence[str], *, group: int, member: int) -> Episode:
        """Return an example episode that counts as correct, instead of an episode with the given turns of an expert."""
        made = await self._made(group, member, start.problem_id, 1.0)
        made.source = "expert"
        self.played.append(made)
        return made

    def problem(self, problem_id: str) -> Problem | None:
        """Return an example problem with the given id, a rubric and a demonstration."""
        rubric = [{"criterion": "It is right.", "points": 1.0}]
        meta = {"rubric": rubric, "demonstration": ["It is 42."]}
        return Problem(problem_id, f"What is {problem_id}?", "42", meta=meta)

    async def branch(self, episode: Episode, token: int, n: int, *, manner: Manner = PLAIN) -> list[Episode]:
        """Play ``n`` episodes that share their first ``token`` tokens with ``episode``."""
        if not any(episode is played for played in self.played):
            raise AssertionError("the rollout part requests a branch of an episode that was not played in this call")
        turns = [turn for turn in episode.steps if turn.start <= token < turn.stop]
        at_its_end = episode.end == OPEN and token == len(episode.completion_ids)
        if not turns and not at_its_end:
            raise AssertionError(
                f"the rollout part requests a branch at token {token}, which is not in a turn of the policy"
            )
        await self._pause()
        grown = []
        for _ in range(n):
            # The draws must not depend on the order in which episodes are branched.
            self.branched[id(episode), token] += 1
            rng = np.random.default_rng([self._seed, token, self.branched[id(episode), token], *episode.completion_ids])
            made = copy.deepcopy(episode)
            own = len(made.completion_ids) - token
            made.completion_ids[token:] = [int(one) for one in rng.integers(3, 50, size=own)]
            if at_its_end:
                _go_on(made, rng)
            made.reward, made.end = float(rng.integers(2)), "answered"
            made.correct = made.reward > 0
            self._record(made, manner, token)
            grown.append(made)
        return grown

    async def _made(self, group: int, member: int, problem: str, reward: float | None = None) -> Episode:
        """Make an episode after a pause; if no reward is given, draw one."""
        self.asked.append((group, member))
        await self._pause()
        end = "unavailable" if (group, member) in self._failing else "answered"
        rng = np.random.default_rng([self._seed, group, member])
        drawn = float(rng.integers(2)) if reward is None else reward
        return episode(rng, drawn, group=group, end=end, problem=problem)

    def _record(self, made: Episode, manner: Manner, shared: int) -> None:
        """Record an episode whose first ``shared`` tokens were copied from another episode.

        If ``manner.chunk`` is set, the episode is cut after that number of tokens of its first new turn, at the latest
        at the end of this turn, and stays unfinished.
        """
        turn = next((turn for turn in made.steps if turn.stop > shared), None)
        if manner.chunk is not None and made.available and turn is not None:
            stop = min(turn.stop, max(turn.start, shared) + manner.chunk)
            if stop < len(made.completion_ids):
                made.end, made.reward, made.correct = OPEN, 0.0, False
                for entries in (made.completion_ids, made.mask, made.logprobs):
                    del entries[stop:]
                made.steps = [one for one in made.steps if one.start < stop]
                made.steps[-1].stop = stop
        for one in made.steps if manner.candidates else ():
            one.entropy = sum(made.completion_ids[one.start : one.stop]) % 7 / 7
        self.played.append(made)

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each id under a uniform policy with a vocabulary of 100 tokens."""
        await self._pause()
        return [-float(np.log(100))] * len(ids)

    def encode(self, text: str) -> list[int]:
        """Return one id for each character."""
        return [ord(character) for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        """Return one character for each id."""
        return "".join(map(chr, ids))

    async def _pause(self) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for _ in range(_PAUSES):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
            self.finished += 1


def _go_on(made: Episode, rng: np.random.Generator) -> None:
    """Add some tokens to the last turn of an unfinished episode."""
    written = int(rng.integers(1, 5))
    made.completion_ids += [int(one) for one in rng.integers(3, 50, size=written)]
    made.mask += [1] * written
    made.logprobs += [-0.5] * written
    last = made.steps[-1]
    made.steps[-1] = Turn(last.start, len(made.completion_ids), last.observation, 0.0, last.statuses)
