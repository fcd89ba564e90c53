"""Replay the actions of a stored episode in its environment, and find results that differ from the stored ones.

Covered: the texts shown to the policy, rewards, ends, statuses and everything else in ``info``. Not covered: the tokens
that the policy would draw (``rstar2_env.rollout.replay`` branches an episode while it is played).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from rstar2_env.core import trust
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.evaluation.stored.runs import Setting
from rstar2_env.problems import Problem
from rstar2_env.wrappers.make import make_env


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the stored and the replayed results of an environment.

    Attributes:
        turn: Number of the policy's turn before the difference, from 1; 0 for the result of ``reset``.
        what: Name of the value: ``text`` and ``role`` of the message shown to the policy, ``reward``, ``over``
            (whether the episode ended), ``error`` (an exception in the replay), or a key of ``info`` (``info.end``).
        stored: Value in the stored episode.
        replayed: Value in the replay.
    """

    turn: int
    what: str
    stored: Any
    replayed: Any


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay.

    Attributes:
        turns: Number of replayed turns.
        turns_stored: Number of turns of the stored episode.
        differences: Differences in the environment's answers, in order.
    """

    turns: int
    turns_stored: int
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether the replay gave the same results as the stored episode."""
        return not self.differences


def replay(episode: Episode, setting: Setting, *, problem: Problem | None = None, trained: bool = False) -> Replayed:
    """Play the actions of an episode again.

    Args:
        episode: The episode, as a run keeps it.
        setting: Environment and options of the run.
        problem: Problem of the episode, if ``reset`` received it.
        trained: Whether the episode was played in training, where ``reset`` receives a seed and at most the id of a
            problem.

    Raises:
        ConfigurationError: The episode has no turn, its environment cannot be made, or the problems that ``reset``
            received cannot be found again.
    """
    actions = [message.content for message in episode.messages if message.role == "assistant"]
    if not actions:
        raise ConfigurationError(
            f"The episode ended (end: {episode.end or 'unknown'}) before its first turn, so it has no actions to "
            "replay."
        )
    by_id = [{"problem_id": episode.problem_id}] if episode.problem_id else []
    handed = [{"problem": problem}] if problem is not None else []
    ways: list[dict[str, Any]] = [{}, *by_id, *handed] if trained else [*handed, {}, *by_id]
    with (
        trust.bounds(trust=setting.trusted),
        closing(make_env(setting.env, wrappers=setting.wrappers, **setting.env_options)) as env,
    ):
        return _play(env, episode, actions, ways, "" if problem or trained else setting.problems)


def _play(
    env: gym.Env[str, str], episode: Episode, actions: list[str], ways: list[dict[str, Any]], lost: str
) -> Replayed:
    again, found = _begin(env, episode, ways, lost)
    turns = 0
    for turn, action in enumerate(actions, 1):
        try:
            over = again.step(action, env.step(action))
        except Rstar2Error as error:
            found.append(Difference(turn, "error", None, str(error)))
            break
        turns = turn
        last = turn == len(actions)
        found += _step_differences(episode, again, turn)
        if over != last and not (last and episode.end in _OURS):
            found.append(Difference(turn, "over", last, over))
        if over or last:
            break
    return Replayed(turns, len(actions), tuple(found))


_OURS = frozenset({"cancelled", "tokens", "time", "turns", "unavailable", "no_text", "cut", "refused"})
"""Values of ``Episode.end`` that a player may set when the environment itself has not ended the episode."""


def _begin(
    env: gym.Env[str, str], episode: Episode, ways: list[dict[str, Any]], lost: str
) -> tuple[Episode, list[Difference]]:
    """Reset the environment with the first options that reproduce the stored start; else with the first valid options.

    Args:
        env: The environment.
        episode: The stored episode.
        ways: Alternative options of ``reset``, in the order in which they are tried.
        lost: Name of the run's source of problems, if the problem cannot be found in it; else empty.

    Returns:
        The new episode, which has no turn yet, and the differences between the two starts.
    """
    began: list[tuple[dict[str, Any], list[Difference]]] = []
    failure: Rstar2Error | None = None
    for way in ways:
        try:
            again = Episode(seed=episode.seed).begin(*env.reset(seed=episode.seed, options=way or None))
        except Rstar2Error as error:
            failure = failure or error
            continue
        began.append((way, _reset_differences(episode, again)))
        if not began[-1][1]:
            return again, []
    if not began:
        raise ConfigurationError(
            f"The environment cannot be reset to the start of the recorded episode: {failure}", option="problems"
        )
    way, found = began[0]
    if lost and all(differences[0].what == "info.problem_id" for _, differences in began):
        raise ConfigurationError(
            f"The problem {episode.problem_id!r} of the episode cannot be found, because the run records "
            f"only the name of its source of problems, {lost!r}. Give the problems of the run.",
            option="problems",
        )
    return Episode(seed=episode.seed).begin(*env.reset(seed=episode.seed, options=way or None)), found


def _reset_differences(episode: Episode, again: Episode) -> list[Difference]:
    return _differing(
        0,
        ("info.problem_id", episode.problem_id, again.problem_id),
        ("info.system", _first(episode, "system"), _first(again, "system")),
        ("text", _first(episode, "user"), _first(again, "user")),
    )


def _differing(turn: int, *values: tuple[str, Any, Any]) -> list[Difference]:
    """Return a ``Difference`` for each triple (name, stored value, new value) whose values differ."""
    return [Difference(turn, name, stored, now) for name, stored, now in values if stored != now]


def _first(episode: Episode, role: str) -> str:
    """Return the text of a role's first message before the policy's first turn; empty if there is none."""
    for message in episode.messages:
        if message.role == "assistant":
            break
        if message.role == role:
            return message.content
    return ""


def _step_differences(episode: Episode, again: Episode, turn: int) -> list[Difference]:
    found: list[Difference] = []
    stored, now = _shown(episode, turn), _shown(again, turn)
    # A player that ends an episode itself does not store the last text that it was shown.
    if stored is not None or turn < episode.turns:
        found += _differing(turn, *zip(("role", "text"), stored or ("", ""), now or ("", ""), strict=True))
    if turn > len(episode.steps):
        return found
    before, after = episode.steps[turn - 1], again.steps[turn - 1]
    if episode.available:
        found += _differing(turn, ("reward", before.reward, after.reward))
    return found + _info_differences(turn, before.info, jsonable(after.info))


def _shown(episode: Episode, turn: int) -> tuple[str, str] | None:
    """Role and text of the message that the policy is shown after a turn; ``None`` if there is no message."""
    spoken = 0
    for at, message in enumerate(episode.messages):
        spoken += message.role == "assistant"
        if spoken == turn:
            after = episode.messages[at + 1 : at + 2]
            return (after[0].role, after[0].content) if after and after[0].role != "assistant" else None
    return None


_LATER = frozenset({"verdict"})
"""Keys of ``info`` that runs of earlier versions of this package lack."""


def _info_differences(turn: int, stored: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    if not stored:
        return []  # a player that keeps no info
    names = [*stored, *(name for name in now if name not in stored and name not in _LATER)]
    return _differing(turn, *((f"info.{name}", stored.get(name), now.get(name)) for name in names))
