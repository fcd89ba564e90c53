"""skyrl-gym (0.4): plays environments of this package in skyrl-gym, and environments of skyrl-gym in this package.

Covered: ``register`` gives an environment an id of skyrl-gym, ``rows`` makes the data set's rows, ``SkyRLEnv`` plays an
environment of skyrl-gym through ``reset`` and ``step``. Not covered: SkyRL's trainer. skyrl-gym's interface has two
limits. It merges ``terminated`` and ``truncated`` into one ``done`` (``metadata`` has both). It cannot leave an episode
out of its group, so an ``unavailable`` episode raises an error; otherwise SkyRL would treat its 0.0 as a wrong answer.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.adapters.base.foreign import ForeignEnv, Opening, TurnReply
from rstar2_env.adapters.base.global_random import GlobalRandom
from rstar2_env.adapters.base.messages import user_and_system
from rstar2_env.adapters.base.served import ServedEnv, start_of, starts
from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.options.declare import Count, checked
from rstar2_env.wrappers.make import make_env

try:
    import skyrl_gym
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ImportError as error:
    raise MissingExtraError("skyrl", "The adapter 'skyrl'") from error


class SkyRLServed(BaseTextEnv):
    """Lets skyrl-gym create and play an environment of this package.

    Args:
        env_config: SkyRL's own configuration of the environment; not read.
        extras: The row of the data set; its ``seed`` or ``problem_id`` selects the problem.
        env: A registered id, or any other value that ``make_env`` accepts.
        options: Options of ``make_env``: options of the environment, and ``wrappers``.
    """

    def __init__(
        self,
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
        *,
        env: str,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._extras = dict(extras or {})
        self._served = ServedEnv(make_env(env, **(options or {})), "skyrl")

    def init(self, prompt: Sequence[Mapping[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Start the row's episode.

        Args:
            prompt: The row's own messages; the environment's messages follow.

        Raises:
            ConfigurationError: The row selects no problem, so the episodes of a group would play different problems.
        """
        text, info = self._served.reset(*start_of(self._extras, "skyrl"))
        self.turns = 0
        system = [{"role": "system", "content": info["system"]}] if info.get("system") else []
        return [*system, *(dict(message) for message in prompt), {"role": "user", "content": text}], jsonable(info)

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Play one turn.

        Raises:
            ServiceError: The environment was not available.
        """
        self.turns += 1
        text, reward, terminated, truncated, info = self._served.step(action)
        metadata = {**jsonable(info), "terminated": terminated, "truncated": truncated}
        shown = [{"role": str(info.get("role", "user")), "content": text}] if text else []
        return BaseTextEnvStepOutput(
            observations=shown, reward=float(reward), done=self._served.over, metadata=metadata
        )

    def close(self) -> None:
        """Close the environment."""
        self._served.env.close()

    def get_metrics(self) -> dict[str, Any]:
        """Return the episode's ``turns``, ``tool_calls``, ``tool_errors`` and ``correct``, which skyrl-gym averages."""
        episode = self._served.episode
        return {
            "turns": self.turns,
            "tool_calls": episode.tool_calls,
            "tool_errors": sum(status.is_error for status in episode.statuses),
            "correct": float(episode.correct),
        }


def register(skyrl_id: str, env: str, **options: Any) -> None:
    """Register an environment of this package under an id of skyrl-gym.

    Args:
        skyrl_id: The ``env_class`` of the data set's rows.
        env: A registered id, or any other value that ``make_env`` accepts.
        **options: Options of ``make_env``: options of the environment, and ``wrappers``.
    """
    make_env(env, **options).close()  # reports wrong options here, not in every episode
    kwargs = {"env": env, "options": options}
    skyrl_gym.register(skyrl_id, entry_point=f"{__name__}:SkyRLServed", kwargs=kwargs)


def rows(skyrl_id: str, env: str, count: int, *, seed: int = 0, **options: Any) -> list[dict[str, Any]]:
    """Return rows of a SkyRL data set: an empty prompt, which the environment fills, and the arguments of ``reset``.

    Args:
        skyrl_id: The id that was passed to ``register``.
        env: The environment that ``register`` was called with.
        count: Number of rows.
        seed: Different seeds give rows with different problems.
        **options: Options of ``make_env``.
    """
    return [{"prompt": [], "env_class": skyrl_id, **start} for _, _, start in starts(env, count, seed, options)]


class SkyRLEnv(ForeignEnv):
    """Environment that plays an environment of skyrl-gym.

    When skyrl-gym reports ``done``, the episode ends as ``answered``. skyrl-gym's ``metadata`` is ``info["metadata"]``.
    skyrl-gym does not report the results of calls, so there are no statuses. ``postprocessed_action``, which SkyRL's
    trainer reads, is in ``info`` too; the policy's own turn is unchanged.

    Args:
        env: Id of skyrl-gym ("gsm8k").
        rows: The data set: a list of rows, or a file of JSON lines. Each row has ``prompt`` (messages) and the other
            fields that the environment reads.
        env_config: Configuration that is passed to the environment.
        max_turns: Maximum number of turns of the policy. skyrl-gym receives the row's ``max_turns`` as its own limit,
            or this number if the row has none.
        full_reward: Minimum return at which an episode counts as solved.

    Raises:
        ConfigurationError: skyrl-gym has no such environment, there are no rows, or a row has no ``prompt``.
    """

    @checked
    def __init__(
        self,
        *,
        env: str,
        rows: Sequence[Mapping[str, Any]] | str,
        env_config: Mapping[str, Any] | None = None,
        max_turns: Count = 16,
        full_reward: float = 1.0,
    ) -> None:
        self._rows = _read(rows) if isinstance(rows, str) else [dict(row) for row in rows]
        if not self._rows or any("prompt" not in row for row in self._rows):
            raise ConfigurationError("rows: expected at least one row, each with a field prompt (a list of messages).")
        if env not in skyrl_gym.envs.registration.registry:
            known = ", ".join(sorted(skyrl_gym.envs.registration.registry))
            raise ConfigurationError(
                f"The option `env` names {env!r}, but skyrl-gym has only the environments {known}."
            )
        super().__init__(f"skyrl/{env}", max_turns=max_turns, full_reward=full_reward, numbers=len(self._rows))
        self._id, self._config = env, dict(env_config or {})
        self._theirs: Any = None
        self._random = GlobalRandom()

    def begin(self, number: int) -> Opening:
        """Make skyrl-gym's environment for a row and start it."""
        extras = copy.deepcopy(self._rows[number])
        prompt = extras.pop("prompt")
        extras.setdefault("max_turns", self._max_turns)
        with self._random.seeded(number):
            self._theirs = skyrl_gym.make(self._id, env_config=self._config, extras=extras)
            messages, metadata = self._theirs.init(prompt)
        return Opening(*user_and_system(messages), {"metadata": metadata})

    def play(self, turn: str) -> TurnReply:
        """Pass the turn to skyrl-gym's environment."""
        with self._random.resumed():
            made = self._theirs.step(turn)
        shown = list(made["observations"] or ())
        info = {"metadata": made.get("metadata") or {}}
        if made.get("postprocessed_action") is not None:
            info["postprocessed_action"] = made["postprocessed_action"]
        return TurnReply(
            text="\n\n".join(str(one["content"]) for one in shown),
            reward=float(made["reward"] or 0.0),
            end="answered" if made["done"] else None,
            role=str(shown[-1]["role"]) if shown else "user",
            info=info,
        )

    def release(self) -> None:
        """Close skyrl-gym's environment."""
        if self._theirs is not None:
            theirs, self._theirs = self._theirs, None
            theirs.close()


def _read(path: str) -> list[dict[str, Any]]:
    try:
        text = Path(path).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The file {path} of rows cannot be read as JSON Lines: {error}.") from error
