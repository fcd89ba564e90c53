"""``rstar2/Mixture-v0``: several environments as one, by weight, with a reward scale for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from rstar2_env.core.errors import ConfigurationError, EpisodeOverError, UnknownNameError
from rstar2_env.core.options.declare import call_with_options, option
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.env.grading import Grader
from rstar2_env.env.named import find_env
from rstar2_env.env.spaces import UnicodeText
from rstar2_env.env.vector import vector_entry_point
from rstar2_env.problems import MixtureSource, Problem, ProblemSource
from rstar2_env.problems.mixture import LabelledSource
from rstar2_env.tools.joined import JoinedChains

DEFAULT: Mapping[str, Mapping[str, Any]] = {
    "math": {"id": "rstar2/MathTool-v0", "weight": 2.0},
    "congruence": {"id": "rstar2/Bootcamp-v0"},
    "tictactoe": {"id": "rstar2/TicTacToe-v0"},
    "negotiate": {"id": "rstar2/Negotiate-v0"},
}
"""Sources of ``rstar2/Mixture-v0`` if ``sources`` is not given."""


@dataclass(frozen=True, slots=True)
class Source:
    """One environment of a mixture.

    Attributes:
        id: Registered id of the environment.
        weight: Relative frequency of the environment's episodes.
        scale: Factor on the environment's reward.
        options: Options of ``gym.make``.
    """

    id: str
    weight: float = option(1.0, least=0)
    scale: float = option(1.0, above=0)
    options: Mapping[str, Any] = field(default_factory=dict)


class MixtureEnv(gym.Env[str, str]):
    """Several environments combined into one: each episode is played in one of them, drawn by weight.

    ## Action space
    Any string, read by the environment of the episode's source.

    ## Observation space
    Any string that the environment of the episode's source returns.

    ## Reward
    The reward of the source's environment, times the source's ``scale``, as in Guru (arXiv 2506.14965). An unknown
    source raises an error; it never gives a reward of 0.

    ## Episode end
    As in the source's environment.

    ## Information
    As in the source's environment, and ``source`` (its name). ``problem_id`` is ``<source>:<id>``. Every step has
    ``source_reward``, the reward before scaling.

    ``reset(options=)`` takes ``{"source": name}``, ``{"problem_id": "<source>:<id>"}``, and ``{"problem": problem}``;
    if the option ``source`` is missing, the problem's field ``source`` selects the source. Other options are passed to
    the source's environment.

    ## Difficulty
    The sources define the difficulty. The default mixture has ``rstar2/MathTool-v0`` (two fifths),
    ``rstar2/Bootcamp-v0``, ``rstar2/TicTacToe-v0`` and ``rstar2/Negotiate-v0`` (a fifth each).

    ## Random baseline
    0.13: this is the weighted mean of the baselines of the default sources.

    ## Version history
    v0: first version.

    Attributes:
        problems: The problems of all sources, drawn in proportion to the weights, with ids ``<source>:<id>``; ``None``
            if a source has no problems.

    Args:
        sources: A mapping from names to the fields of a ``Source``: ``id``, and optionally ``weight``, ``scale``,
            ``options``.
        options: Options of ``gym.make`` for every source; a source's own options override them.
        render_mode: ``"ansi"``, ``"human"`` or ``None``.

    Raises:
        ConfigurationError: There is no source, a weight or scale is out of range, or a name contains a colon.
    """

    random_baseline = 0.13
    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        *,
        sources: Mapping[str, Mapping[str, Any]] | None = None,
        options: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        written = DEFAULT if sources is None else sources
        example = "{'math': {'id': 'rstar2/MathTool-v0', 'weight': 2}}"
        if not isinstance(written, Mapping):
            raise ConfigurationError(f"`sources` must map names to environments, such as {example}, not {written!r}.")
        if not written:
            raise ConfigurationError("`sources` must name at least one environment.")
        for name, spec in written.items():
            if not isinstance(spec, Mapping):
                raise ConfigurationError(
                    f"Source {name!r} must be a mapping with the key 'id', as in {example}, not {spec!r}."
                )
        if not isinstance(options, Mapping | None):
            raise ConfigurationError(f"`options` must map names of gym.make's options to values, not {options!r}.")
        self.sources = {
            name: call_with_options(f"source {name!r}", Source, spec, prefix=f"sources.{name}.")
            for name, spec in written.items()
        }
        for name in self.sources:
            if not isinstance(name, str) or not name or ":" in name:
                raise ConfigurationError(f"A source's name must be a string without a colon, not {name!r}.")
        total = sum(source.weight for source in self.sources.values())
        if not total > 0:
            raise ConfigurationError("At least one source of a mixture must have a weight above 0.")
        self._chances = np.array([source.weight / total for source in self.sources.values()])
        self.render_mode = render_mode
        self._envs: dict[str, gym.Env[str, str]] = {
            name: gym.make(
                find_env(source.id).env_id or source.id,
                **{**(options or {}), **source.options, "render_mode": render_mode},
            )
            for name, source in self.sources.items()
        }
        for name, env in self._envs.items():
            spaces = (env.observation_space, env.action_space)
            if not all(isinstance(space, UnicodeText) for space in spaces):
                raise ConfigurationError(
                    f"Source {name!r} is not a text environment: both of its spaces must be UnicodeText, but they are "
                    f"{spaces}."
                )
        self.observation_space = UnicodeText(max(_length(env.observation_space) for env in self._envs.values()))
        self.action_space = UnicodeText(min(_length(env.action_space) for env in self._envs.values()))
        self.tools = JoinedChains([env.unwrapped for env in self._envs.values()])
        self.problems = self._problems()
        self._name = next(iter(self.sources))
        self._over = True
        self._started = False

    @property
    def dialect(self) -> Dialect:
        """The dialect of the running episode."""
        own: Dialect | None = getattr(self._env.unwrapped, "dialect", None)
        return make_dialect("rstar2") if own is None else own

    @property
    def playing(self) -> gym.Env[str, str]:
        """The environment in which the current episode is played."""
        return self._env

    @property
    def grader(self) -> Grader | None:
        """The grader of the running episode, if its environment has one."""
        return getattr(self._env.unwrapped, "grader", None)

    @property
    def problem(self) -> Problem:
        """The problem of the current episode, from the environment in which the episode is played."""
        problem: Problem = self._env.get_wrapper_attr("problem")
        return problem

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode of one source.

        Raises:
            UnknownNameError: ``options`` name an unknown source.
            ConfigurationError: ``options`` name two different sources.
        """
        super().reset(seed=seed)
        self._over = True
        # Always draw both the source and the seed, so that an option does not change later draws.
        drawn = int(self.np_random.choice(len(self._chances), p=self._chances))
        own_seed = int(self.np_random.integers(2**31))
        name, rest = self._route(dict(options or {}))
        self._name = list(self.sources)[drawn] if name is None else name
        text, info = self._env.reset(seed=own_seed, options=rest or None)
        self._over, self._started = False, True
        self.tools.current = list(self.sources).index(self._name)
        return text, info | {"problem_id": f"{self._name}:{info.get('problem_id', '')}", "source": self._name}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play a turn in the environment of the episode's source.

        Raises:
            EpisodeOverError: The episode is over, or none was started.
        """
        if self._over:
            state = "The episode is over" if self._started else "There is no episode yet"
            raise EpisodeOverError(f"{state}: call reset() to start an episode.")
        text, reward, terminated, truncated, info = self._env.step(action)
        self._over = terminated or truncated
        info |= {"source": self._name, "source_reward": float(reward)}
        return text, float(reward) * self.sources[self._name].scale, terminated, truncated, info

    def render(self) -> Any:
        """The conversation of the running episode."""
        return self._env.render()

    def close(self) -> None:
        """Close the environments of all sources."""
        for env in self._envs.values():
            env.close()

    def oracle_turn(self) -> str:
        """Return the reference player's next turn in the source's environment, or else the gold answer as a turn."""
        own = getattr(self._env.unwrapped, "oracle_turn", None)
        return str(own()) if callable(own) else self.dialect.format_answer(self.problem.answer)

    @property
    def _env(self) -> gym.Env[str, str]:
        return self._envs[self._name]

    def _problems(self) -> ProblemSource | None:
        own = {name: getattr(env.unwrapped, "problems", None) for name, env in self._envs.items()}
        parts = [
            (LabelledSource(source, name), self.sources[name].weight)
            for name, source in own.items()
            if isinstance(source, ProblemSource)
        ]
        # Without the problems of one source, the mixture would be different.
        return MixtureSource(parts, name="mixture", separator=":") if len(parts) == len(own) else None

    def _route(self, options: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
        name = options.pop("source", None)
        if "problem_id" in options:
            written, colon, inner = str(options["problem_id"]).partition(":")
            if not colon:
                raise ConfigurationError(
                    f'The problem_id of a mixture must be "<source>:<id>", not {options["problem_id"]!r}.'
                )
            if name not in (None, written):
                raise ConfigurationError(
                    f"`options` names two sources, {name!r} in 'source' and {written!r} in 'problem_id': name only one."
                )
            name, options["problem_id"] = written, inner
        elif "problem" in options:
            problem = options["problem"]
            if name is None:
                name = problem.get("source") if isinstance(problem, Mapping) else getattr(problem, "source", None)
                if name not in self.sources:
                    raise UnknownNameError("source", name, self.sources)
            if isinstance(problem, Problem):
                options["problem"] = dataclasses.replace(problem, id=problem.id.removeprefix(f"{name}:"))
        if name is not None and name not in self.sources:
            raise UnknownNameError("source", name, self.sources)
        return name, options


def _length(space: gym.Space[str]) -> int:
    assert isinstance(space, UnicodeText)
    return space.max_length


gym.register(
    "rstar2/Mixture-v0",
    entry_point="rstar2_env.envs_registry.mixture:MixtureEnv",
    vector_entry_point=vector_entry_point("rstar2/Mixture-v0"),
)
