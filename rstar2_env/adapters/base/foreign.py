"""``ForeignEnv``: base class of adapters that put another framework's environment behind this package's contract.

Covered: seeds, problem ids, the turn budget, the keys of ``info``, errors of the other framework, texts that must fit
the action and observation spaces. An adapter defines ``begin`` and ``play``, and ``release`` if it holds resources. Not
covered: information that the other framework does not report. Calls that the other framework runs itself have no status
here, so ``tool_calls`` is empty unless an adapter fills it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeAlias

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError, EpisodeOverError, UnknownNameError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.options.declare import check_option
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import encodable
from rstar2_env.env.spaces import UnicodeText, check_action
from rstar2_env.env.turn_result import StepReturn, call_counts
from rstar2_env.tools.cut import cut_middle

End: TypeAlias = Literal["answered", "no_answer", "turns", "tokens", "time", "unavailable"]

_MAX_TEXT = 1 << 20
_NOTE_LENGTH = 64
"""Number of characters reserved for the note that ``cut_middle`` inserts at the cut."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of an episode in another framework's environment.

    Attributes:
        text: The user's first message.
        system: The system message.
        info: Entries of ``info`` in addition to the keys that every environment of this package has.
    """

    text: str
    system: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnReply:
    """The other framework's response to a turn.

    Attributes:
        text: The next observation of the policy.
        reward: Reward of this turn.
        end: The end of the episode; ``None`` if it continues.
        correct: Whether the episode counts as solved; ``None``: solved if the sum of rewards reaches ``full_reward``.
        answer: The answer, if the other framework reports it.
        role: Role of the text.
        calls: Records of the turn's calls, as ``info["tool_calls"]`` holds them.
        info: Entries of ``info`` in addition to the keys that every environment of this package has.
    """

    text: str = ""
    reward: float = 0.0
    end: End | None = None
    correct: bool | None = None
    answer: str | None = None
    role: str = "user"
    calls: tuple[Mapping[str, Any], ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_info(cls, text: str, reward: float, end: End | None, info: Mapping[str, Any]) -> Self:
        """Make a reply from an ``info`` that may have the keys that every environment of this package has.

        Args:
            text: The next observation.
            reward: Reward of the turn.
            end: The end of the episode, or ``None``.
            info: ``correct``, ``answer``, ``role`` and ``tool_calls`` become fields of the reply; other keys stay in
                its ``info``.
        """
        rest = dict(info)
        correct, answer = rest.pop("correct", None), rest.pop("answer", None)
        role, calls = rest.pop("role", "user"), tuple(rest.pop("tool_calls", ()))
        return cls(text, reward, end, correct, answer, role, calls, rest)


class ForeignEnv(gym.Env[str, str], ABC):
    """A text environment whose episodes another framework runs.

    A problem is a number, drawn from the seed; equal numbers give equal episodes if the other framework accepts a seed.
    A copy of an environment, pickled or not, replays the turns of the running episode; the other framework's objects
    are not copied.

    Attributes:
        held: Names of the attributes that hold the other framework's objects; in a copy, ``begin`` creates them again.

    Args:
        name: Prefix of the problem ids.
        max_turns: Maximum number of turns in an episode; the other framework may end it earlier.
        full_reward: Minimum return at which an episode counts as solved, if the other framework does not report
            whether it was solved.
        numbers: Number of different problems.
    """

    held: ClassVar[tuple[str, ...]] = ("_theirs",)

    def __init__(self, name: str, *, max_turns: int, full_reward: float = 1.0, numbers: int = 2**31) -> None:
        self.observation_space = UnicodeText(_MAX_TEXT)
        self.action_space = UnicodeText(_MAX_TEXT)
        self._name, self._max_turns, self._full, self._numbers = name, max_turns, full_reward, numbers
        self._over, self._begun = True, False
        self._number, self._played, self._return = 0, list[str](), 0.0
        self._statuses: list[ToolStatus] = []

    @abstractmethod
    def begin(self, number: int) -> Opening:
        """Start the episode with the given problem number. If it raises, so does ``reset``, and no episode begins."""

    @abstractmethod
    def play(self, turn: str) -> TurnReply:
        """Play one turn of the policy. If it raises, the episode ends as ``unavailable``."""

    def release(self) -> None:
        """Release the resources of an episode; called when an episode ends, before every ``reset``, and on close."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seed of the choice of the problem.
            options: ``{"problem_id": str}`` plays that problem again.

        Raises:
            ConfigurationError: ``options`` has a key other than ``problem_id``.
            UnknownNameError: There is no problem with that id.
        """
        super().reset(seed=seed)
        self._over = True
        self.release()
        self._number = self._chosen(dict(options or {}))
        opening = self.begin(self._number)
        self._over, self._begun = False, True
        self._played, self._return, self._statuses = [], 0.0, []
        info = {
            "tools": [],
            "system": encodable(opening.system),
            "stop": [],
            **jsonable(opening.info),
            "problem_id": f"{self._name}/{self._number}",
        }
        return self._shown(opening.text), info

    def step(self, action: str) -> StepReturn:
        """Play one whole turn of the policy.

        Raises:
            EpisodeOverError: The episode is over, or none was started.
            TypeError: The action is not a string.
            ConfigurationError: The action is longer than the action space admits.
        """
        if self._over:
            state = "The episode is over" if self._begun else "There is no episode yet"
            raise EpisodeOverError(f"{state}: call reset() to start an episode.")
        check_action(action, self.action_space)
        action = encodable(action)
        self._played.append(action)
        try:
            reply = self.play(action)
            if not math.isfinite(reply.reward):
                raise ValueError(f"the reward must be a finite number; got {reply.reward}")
        except Exception as error:
            # We assume that the policy did not cause the error; the record contains it.
            reply = TurnReply(end="unavailable", info={"error": f"{type(error).__name__}: {error}"})
        reward = 0.0 if reply.end == "unavailable" else float(reply.reward)
        self._return += reward
        self._statuses += [ToolStatus(call["status"]) for call in reply.calls if not call.get("injected")]
        end = reply.end or ("turns" if len(self._played) >= self._max_turns else None)
        info: dict[str, Any] = {"role": reply.role, "tool_calls": [dict(call) for call in reply.calls]}
        info["answer_tags"] = int(reply.answer is not None)
        if end is None:
            return self._shown(reply.text), reward, False, False, info | jsonable(reply.info)
        self._over = True
        self.release()
        solved = self._return >= self._full - 1e-9 if reply.correct is None else reply.correct
        info |= {
            "end": end,
            "answer": None if reply.answer is None else encodable(reply.answer),
            "correct": bool(solved) and end != "unavailable",
            "turns": len(self._played),
        }
        info |= call_counts(self._statuses) | jsonable(reply.info)
        terminated = end in ("answered", "no_answer")
        return self._shown(reply.text), reward, terminated, not terminated, info

    def close(self) -> None:
        """Release the environment's resources."""
        self._over = True
        self.release()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the other framework's objects."""
        return {name: value for name, value in vars(self).items() if name not in self.held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the running episode by replaying its turns."""
        vars(self).update(dict.fromkeys(self.held), **state)
        if not self._over:
            self.begin(self._number)
            for turn in self._played:
                self.play(turn)

    def _chosen(self, options: dict[str, Any]) -> int:
        if set(options) - {"problem_id"}:
            raise ConfigurationError(
                f'reset(options=) accepts only the key "problem_id", not {sorted(map(str, options))}.'
            )
        if not options:
            return int(self.np_random.integers(self._numbers))
        check_option("problem_id", options["problem_id"], str)
        name, _, number = options["problem_id"].rpartition("/")
        if name != self._name or not (number.isascii() and number.isdigit()) or int(number) >= self._numbers:
            raise UnknownNameError("problem", options["problem_id"], [f"{self._name}/0", f"{self._name}/1", "..."])
        return int(number)

    def _shown(self, text: str) -> str:
        return cut_middle(encodable(text), _MAX_TEXT - _NOTE_LENGTH)[0]
