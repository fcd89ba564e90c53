"""``Bench``: the environment under test, its instances and seeds, and a record of every episode played on it.

Covered: the input of a scripted player (``View``), and the record of an episode (``BenchEpisode``). The record keeps
the values of ``step`` unchanged, even malformed values that ``core.Episode`` would reject. Checks share the episodes of
a player. Not covered: the players (``players``, ``exploits``) and the checks.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.env.named import NamedEnv
from rstar2_env.env.reference import playing
from rstar2_env.env.turn_result import TextEnv as TextEnv
from rstar2_env.problems import Problem, ProblemSource
from rstar2_env.testing.harness import canonical

_SHOWN = 400


@dataclass(frozen=True)
class Bounds(CheckedOptions):
    """Bounds that the author of an environment may declare, as in OpenEnv's RFC 008.

    The command ``rstar2 validate`` sets them with ``--set bounds.NAME=VALUE``.

    Attributes:
        oracle_tolerance: Maximum difference between 1 and the reference player's mean reward.
        floor_margin: Minimum difference between the mean rewards of the reference player and of players that do not
            know the answer; also the maximum reward of a wrong answer.
        variance_tolerance: Largest standard deviation of the reference player's reward.
        exploit_margin: Maximum amount by which the mean reward of an exploit may exceed the mean reward of the random
            player.
        headroom: Minimum difference between 1 and the random player's mean reward.
        gap: Minimum difference between the mean rewards of the reference player and of the best exploit.
        signal: Minimum share of groups (episodes with the same start) in which a medium-skilled player's rewards vary.
        episode_s: Maximum wall-clock seconds of an episode.
        memory_mb: Maximum growth of the process in MiB while episodes are played.
        turns: Maximum number of turns of an episode; a longer episode shows that the environment sets no limit itself.
    """

    oracle_tolerance: float = option(0.0, least=0, most=1)
    floor_margin: float = option(0.1, least=0, most=1)
    variance_tolerance: float = option(0.2, least=0, most=1)
    exploit_margin: float = option(0.05, least=0, most=1)
    headroom: float = option(0.2, least=0, most=1)
    gap: float = option(0.5, least=0, most=1)
    signal: float = option(0.25, least=0, most=1)
    episode_s: float = option(3600.0, above=0, unit="seconds")
    memory_mb: int = option(256, least=1)
    turns: int = option(200, least=1)


class EndlessEpisodeError(Exception):
    """An episode did not end within the maximum number of turns."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One turn of an episode.

    Attributes:
        action: The player's action.
        text: The text that ``step`` returned.
        reward: Reward of the turn, before a mixture of environments scales it.
        terminated: As ``step`` returned it.
        truncated: As ``step`` returned it.
        info: As ``step`` returned it.
    """

    action: str
    text: str
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]

    @classmethod
    def play(cls, env: TextEnv, action: str) -> StepRecord:
        """Take one step in an environment and record it."""
        text, reward, terminated, truncated, info = env.step(action)
        return cls(action, text, float(info.get("source_reward", reward)), terminated, truncated, info)

    @property
    def over(self) -> bool:
        """Whether the episode ended with this turn."""
        return self.terminated or self.truncated

    @property
    def status(self) -> str | None:
        """Status of the first tool call of the turn; ``None`` without a call."""
        calls = self.info.get("tool_calls") or ()
        return str(calls[0]["status"]) if calls else None

    def comparable(self) -> tuple[Any, ...]:
        """Return the values that a repetition of the turn must reproduce."""
        return self.text, self.reward, self.terminated, self.truncated, canonical(self.info)


@dataclass(slots=True)
class BenchEpisode:
    """The record of one episode.

    Attributes:
        player: Name of the player.
        seed: Seed of ``reset``.
        question: The text that ``reset`` returned.
        info: The ``info`` that ``reset`` returned.
        gold: The gold answer; ``None`` if the environment has no problem.
        turns: The turns, in order.
    """

    player: str
    seed: int
    question: str
    info: Mapping[str, Any]
    gold: str | None
    turns: list[StepRecord] = field(default_factory=list)

    @property
    def reward(self) -> float:
        """Sum of the rewards of the turns."""
        return sum(turn.reward for turn in self.turns)

    @property
    def last(self) -> Mapping[str, Any]:
        """The ``info`` of the last turn; empty before the first turn."""
        return self.turns[-1].info if self.turns else {}

    @property
    def correct(self) -> bool:
        """Whether the environment reports a correct answer."""
        return bool(self.last.get("correct", False))

    @property
    def unavailable(self) -> bool:
        """Whether a failure of the environment's infrastructure ended the episode."""
        return self.last.get("end") == "unavailable"

    @property
    def actions(self) -> list[str]:
        """The action of each turn."""
        return [turn.action for turn in self.turns]

    def graded(self) -> tuple[Any, ...]:
        """Return the sum of the rewards, and ``correct``, ``end`` and ``answer`` from the last turn's ``info``."""
        return self.reward, self.correct, self.last.get("end"), self.last.get("answer")

    def comparable(self) -> list[tuple[Any, ...]]:
        """Return the values that a repetition of the episode must reproduce."""
        return [(self.question, canonical(self.info)), *(turn.comparable() for turn in self.turns)]

    def to_dict(self) -> dict[str, Any]:
        """Return the first 10 turns and the result as JSON values; long texts are cut."""
        return {
            "player": self.player,
            "seed": self.seed,
            "question": cut(self.question),
            "turns": [{"action": cut(t.action), "text": cut(t.text), "reward": t.reward} for t in self.turns[:10]],
            "reward": self.reward,
            "correct": self.correct,
            "end": str(self.last.get("end", "")),
        }


@dataclass(slots=True)
class View:
    """Input of a scripted player.

    Attributes:
        env: The environment; a player that must not know the gold answer does not read it from here.
        question: The text that ``reset`` returned.
        info: The ``info`` that ``reset`` returned.
        shown: The last text that the environment showed.
        turn: Number of the turn, from 0.
        seed: Seed of the episode.
        draw: Number of the repetition from the same start, from 0.
        rng: Random generator, seeded by ``seed`` and ``draw`` only, so two players that guess make the same guess.
    """

    env: TextEnv
    question: str
    info: Mapping[str, Any]
    shown: str
    turn: int
    seed: int
    draw: int
    rng: Random

    @property
    def draws(self) -> np.random.Generator:
        """A NumPy generator, seeded from ``rng``."""
        return np.random.default_rng(self.rng.getrandbits(32))

    @property
    def dialect(self) -> Any:
        """The environment's dialect; ``None`` if it has none."""
        return getattr(playing(self.env), "dialect", None)

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Schemas of the tools."""
        return self.info.get("tools") or ()

    @property
    def problem(self) -> Problem | None:
        """The problem of the episode, with its gold answer."""
        return problem_of(self.env)

    def say(self, answer: str) -> str:
        """Write a turn with an answer; plain text if the environment has no dialect."""
        return answer if self.dialect is None else str(self.dialect.format_answer(answer))


ScriptedPlayer = Callable[[View], str]
"""Function that returns the action of the next turn."""


@dataclass
class Bench:
    """The environment under test.

    Attributes:
        found: The environment's name and id, and the class or function that creates it.
        make: Makes a new instance.
        plays: Number of episodes of each player.
        seed: The first seed of episodes.
        bounds: The bounds that the author declared.
        contract: Whether to perform the check ``contract``, which checks the whole contract.
    """

    found: NamedEnv
    make: Callable[[], TextEnv]
    plays: int = 16
    seed: int = 0
    bounds: Bounds = field(default_factory=Bounds)
    contract: bool = True
    _made: list[TextEnv] = field(default_factory=list, init=False)
    _kept: dict[str, list[BenchEpisode]] = field(default_factory=dict, init=False)

    @cached_property
    def env(self) -> TextEnv:
        """The instance of the environment that most checks share."""
        return self.fresh()

    @property
    def seeds(self) -> range:
        """Seeds of the episodes of each player."""
        return range(self.seed, self.seed + self.plays)

    def fresh(self) -> TextEnv:
        """Make a new instance of the environment, which ``close`` closes."""
        self._made.append(self.make())
        return self._made[-1]

    def close(self) -> None:
        """Close every instance."""
        for env in self._made:
            with suppress(Exception):
                env.close()

    def view(self, seed: int, options: Mapping[str, Any] | None = None) -> View:
        """Reset the shared instance and return the input of a player's first turn.

        Args:
            seed: Seed of ``reset``.
            options: Options of ``reset``.
        """
        text, info = self.env.reset(seed=seed, options=None if options is None else dict(options))
        return View(self.env, text, info, text, 0, seed, 0, Random(0))

    def episodes(self, name: str, player: ScriptedPlayer, count: int | None = None) -> list[BenchEpisode]:
        """Return the episodes of a player, one for each seed; they are played once and cached.

        Args:
            name: Name of the player; it is the key of the cache.
            player: The player.
            count: Number of episodes, at most one for each seed; ``None`` means one for each seed.
        """
        kept = self._kept.setdefault(name, [])
        wanted = self.plays if count is None else min(count, self.plays)
        while len(kept) < wanted:
            kept.append(self.play(name, player, self.seed + len(kept)))
        return kept[:wanted]

    def play(
        self,
        name: str,
        player: ScriptedPlayer,
        seed: int,
        *,
        env: TextEnv | None = None,
        options: Mapping[str, Any] | None = None,
        draw: int = 0,
    ) -> BenchEpisode:
        """Play one episode.

        Args:
            name: Name of the player.
            player: The player.
            seed: Seed of ``reset`` and of the player's random draws.
            env: Instance to play on; ``None`` means the shared instance.
            options: Options of ``reset``.
            draw: Number of the repetition from the same start; each has its own random draws.

        Raises:
            EndlessEpisodeError: The episode did not end within ``bounds.turns`` turns.
        """
        rng = Random(f"{seed} {draw}")

        def turns(played: BenchEpisode, env: TextEnv) -> Iterator[str]:
            for number in range(self.bounds.turns):
                shown = played.turns[-1].text if played.turns else played.question
                yield player(View(env, played.question, played.info, shown, number, seed, draw, rng))
            raise EndlessEpisodeError(
                f"The episode of seed {seed}, played by the scripted player {name!r}, did not end within "
                f"{self.bounds.turns} turns (set by bounds.turns)."
            )

        return play_turns(self.env if env is None else env, name, seed, turns, options)


def replayed(env: TextEnv, seed: int, actions: Iterable[str]) -> BenchEpisode:
    """Play given actions until the episode ends.

    Args:
        env: The environment.
        seed: Seed of ``reset``.
        actions: The action of each turn.
    """
    return play_turns(env, "again", seed, lambda played, env: actions)


def play_turns(
    env: TextEnv,
    name: str,
    seed: int,
    turns: Callable[[BenchEpisode, TextEnv], Iterable[str]],
    options: Mapping[str, Any] | None = None,
) -> BenchEpisode:
    """Play the actions of an iterator until the episode, or the iterator, ends.

    Args:
        env: The environment.
        name: Name of the player, for the record.
        seed: Seed of ``reset``.
        turns: Called after ``reset`` with the growing record and the environment; returns the actions.
        options: Options of ``reset``.
    """
    text, info = env.reset(seed=seed, options=None if options is None else dict(options))
    problem = problem_of(env)
    played = BenchEpisode(name, seed, text, info, None if problem is None else problem.answer)
    for action in turns(played, env):
        played.turns.append(StepRecord.play(env, action))
        if played.turns[-1].over:
            break
    return played


def source_of(env: TextEnv) -> ProblemSource | None:
    """Return the environment's source of problems, if it exposes one."""
    own = getattr(env.unwrapped, "problems", None)
    return own if isinstance(own, ProblemSource) else None


def problem_of(env: TextEnv) -> Problem | None:
    """Return the problem of the running episode, if the environment has one."""
    found = getattr(playing(env), "problem", None)
    return found if isinstance(found, Problem) else None


def mean(episodes: Sequence[BenchEpisode]) -> float:
    """Mean return over the episodes that are not ``unavailable``; 0 if there are none."""
    counted = [played.reward for played in episodes if not played.unavailable]
    return statistics.fmean(counted) if counted else 0.0


def deviation(episodes: Sequence[BenchEpisode]) -> float:
    """Standard deviation of the returns over the episodes that are not ``unavailable``; 0 if there are none."""
    counted = [played.reward for played in episodes if not played.unavailable]
    return statistics.pstdev(counted) if counted else 0.0


def cut(text: str) -> str:
    """Shorten a text to 400 characters, to be stored as evidence of a check."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text) - _SHOWN} characters more)"
