"""``SaveState``: saves the state of an episode at any turn, so that several continuations can be played from it.

A state consists of the seed and the turns so far. ``restore`` replays these turns; tool calls and notebook cells run
again in a new session. Covered: every environment that is deterministic given its seed and actions, as the contract
requires. Not covered: environments that return clock times: their replays differ, so ``restore`` fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import EpisodeOverError, Rstar2Error
from rstar2_env.wrappers.base import EpisodeSeeds, StepReturn, TextEnv, TextWrapper, copied
from rstar2_env.wrappers.registry import WRAPPERS


class RestoreError(Rstar2Error, RuntimeError):
    """A replay differs from the original episode, so the state cannot be restored."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """An episode up to a turn; it can be pickled, and restored in another instance of the same environment.

    Attributes:
        seed: The seed passed to ``reset``.
        options: The options passed to ``reset``.
        actions: The policy's turns so far.
        digest: Digest of all observations and rewards, used to check a replay.
    """

    seed: int
    options: Mapping[str, Any] | None
    actions: tuple[str, ...]
    digest: str


class SaveState(TextWrapper, gym.utils.RecordConstructorArgs):
    """Adds ``save`` and ``restore``. Apply it as the outermost wrapper, so that all other wrappers are replayed too.

    Example::

        env = SaveState(gym.make("rstar2/MathTool-v0"))
        env.reset(seed=1)
        env.step(first_turn)
        here = env.save()
        for turn in candidates:
            env.restore(here)
            env.step(turn)

    Args:
        env: A deterministic environment.
    """

    def __init__(self, env: TextEnv) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._seeds = EpisodeSeeds()
        self._seed: int | None = None
        self._options: dict[str, Any] | None = None
        self._actions: list[str] = []
        self._digest = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; if no seed is given, draw one."""
        return self._begin(self._seeds.next(seed), options)

    def step(self, action: str) -> StepReturn:
        """Play a turn and record it."""
        returned = self.take(action)
        self._actions.append(action)
        self._digest = _digest(self._digest, returned[0], returned[1])
        return returned

    def save(self) -> SavedState:
        """Return the state of the episode at this turn; the episode may be over.

        Raises:
            EpisodeOverError: No episode has started.
        """
        if self._seed is None:
            raise EpisodeOverError("There is no episode to save: call reset() first.")
        return SavedState(self._seed, copied(self._options), tuple(self._actions), self._digest)

    def restore(self, state: SavedState) -> tuple[str, dict[str, Any]]:
        """Replay a saved episode up to the turn at which it was saved.

        Returns:
            The observation and ``info`` that precede the policy's next turn.

        Raises:
            RestoreError: The replay differs from the episode; call ``reset`` before you continue.
        """
        text, info = self._begin(state.seed, copied(state.options))
        for number, action in enumerate(state.actions):
            try:
                text, *_, info = self.step(action)
            except EpisodeOverError as error:
                raise RestoreError(
                    "The saved state cannot be restored, because the replay of the episode ended before turn "
                    f"{number}; {_ADVICE}"
                ) from error
        if self._digest != state.digest:
            raise RestoreError(
                f"The saved state cannot be restored, because the replay of its {len(state.actions)} turns "
                f"gave other results; {_ADVICE}"
            )
        return text, info

    def _begin(self, seed: int, options: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
        self._seed, self._options, self._actions = seed, copied(options), []
        text, info = self.env.reset(seed=seed, options=copied(options))
        self._digest = _digest("", text, 0.0)
        return text, info


_ADVICE = "restore it in an environment with the same options whose tools do not print clock times or addresses."


def _digest(before: str, text: str, reward: float) -> str:
    return hashlib.blake2b(f"{before}|{reward!r}|{text}".encode(), digest_size=16).hexdigest()


WRAPPERS.register("save_state", SaveState)
