"""Agents as players of an evaluation: one environment and one agent in each worker thread.

The sandbox and the verifier are shared by all threads of the process. Not covered: agents
(``rstar2_env.env.agent``).
"""

from __future__ import annotations

import importlib
import inspect
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from rstar2_env.core.blocking import run_blocking
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import typed_options
from rstar2_env.core.options.parts import read_part
from rstar2_env.core.stop_request import Stop
from rstar2_env.env.agent import AnyAgent
from rstar2_env.evaluation.play.crew import Results, TaskJudge, Tasks
from rstar2_env.evaluation.play.episode import StopPlayingError, play_episode
from rstar2_env.evaluation.play.plan import Task
from rstar2_env.evaluation.play.played import PlayedEpisode
from rstar2_env.evaluation.play.scores import NOT_OF_AGENTS, EpisodeScores

if TYPE_CHECKING:
    from rstar2_env.rollout.env_pool import EnvFactory


class AgentCrew:
    """Plays the episodes of an evaluation with an agent, in several worker threads.

    Args:
        make_env: Makes an environment.
        agent: Name of an agent, or the user's own code, with or without options; or a function that returns an agent.
        options: Options of an agent given by name.
        workers: Number of threads; an interactive agent, such as a person, always gets one thread.
        judge: Judges chains of thought; ``None`` for no judge.

    Attributes:
        env: The first worker's environment.
        record: The agent's name and options, except options that do not affect its turns.
        determinism: Sentence that states whether the same seeds give the same episodes.
        lacking: Inputs that reward components can need (``Need``) but an agent cannot provide, mapped to the reasons.

    Raises:
        ConfigurationError: The options do not fit.
        UnknownNameError: There is no agent with that name.
    """

    def __init__(
        self,
        make_env: EnvFactory,
        agent: str | Callable[[], AnyAgent],
        options: Mapping[str, Any],
        workers: int,
        judge: TaskJudge | None = None,
    ) -> None:
        self._make_env, self._agent, self._options, self._judge = make_env, agent, options, judge
        first = self._player()
        self._players = [first]
        self.env = first.env
        self._workers = 1 if getattr(first.agent, "interactive", False) else workers
        said = getattr(first.agent, "determinism", "")
        self.determinism = str(said or "The agent receives the same seeds; its turns may still differ.")
        incidental: Collection[str] = getattr(first.agent, "incidental", ())
        kept = {name: value for name, value in options.items() if name not in incidental}
        self.record: dict[str, Any] = {"agent": agent_name(agent), "agent_options": kept}
        self.lacking = NOT_OF_AGENTS

    def threads(
        self, tasks: Tasks, count: int, results: Results, stop: Stop, scores: EpisodeScores | None = None
    ) -> Sequence[threading.Thread]:
        """Return one thread for each worker that has a task; see ``Crew.threads``."""
        while len(self._players) < min(self._workers, count):
            self._players.append(self._player())
        return [
            threading.Thread(
                target=self._work, args=(player, tasks, results, stop, scores), name="evaluate", daemon=True
            )
            for player in self._players
        ]

    def close(self) -> None:
        """Close the environments, except environments that a thread still uses."""
        for player in self._players:
            if not player.busy:
                player.env.close()

    def _player(self) -> _Player:
        env = self._make_env()
        if not isinstance(self._agent, str):
            return _Player(env, self._agent())
        # Imported by name at run time, because this layer must not depend on agents.
        package = importlib.import_module("rstar2_env.agents")
        part = read_part(self._agent, "agent")
        options = {**self._options, **part.options}
        dialect = getattr(env.unwrapped, "dialect", None)
        if dialect is not None and "dialect" in inspect.signature(package.AGENTS.get(part.name)).parameters:
            options.setdefault("dialect", dialect)
        return _Player(env, package.make(part.name, **options))

    def _work(self, player: _Player, tasks: Tasks, results: Results, stop: Stop, scores: EpisodeScores | None) -> None:
        player.busy = True
        task: Task | None = None
        try:
            while not stop():
                task = tasks.take()
                if task is None:
                    break
                with stop.flight():
                    played = self._play(player, task, stop)
                    scored = [played] if scores is None else run_blocking(partial(scores.score, played))
                for one in scored:
                    results.put(one)
        except StopPlayingError:
            pass
        except BaseException as error:
            if task is not None:
                which = task.problem_id or "of its choice"
                error.add_note(f"While playing episode {task.index} (seed {task.seed}, problem {which}).")
            results.put(error)
        finally:
            player.busy = False
            results.put(None)

    def _play(self, player: _Player, task: Task, stop: Stop) -> PlayedEpisode:
        began = time.perf_counter()
        episode: Episode = play_episode(
            player.env, player.agent, seed=task.seed, problem=task.problem, draws=task.draws, stopped=stop
        )
        episode.group = task.index
        seconds = time.perf_counter() - began
        return PlayedEpisode(task, episode, seconds, None if self._judge is None else self._judge(task, episode))


@dataclass(slots=True)
class _Player:
    """The environment and the agent of one worker thread."""

    env: gym.Env[str, str]
    agent: AnyAgent
    busy: bool = False


def typed_agent_options(agent: str | Callable[[], AnyAgent], options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of an agent, converted and checked, without making the agent.

    Args:
        agent: As in ``AgentCrew``.
        options: The given options.

    Raises:
        ConfigurationError: The agent is a function and options are given, or an option does not fit.
    """
    if not isinstance(agent, str):
        if options:
            raise ConfigurationError(
                "agent_options apply only to an agent that is given by its name, and this agent is a "
                "function: pass the options when you create the function."
            )
        return {}
    part = read_part(agent, "agent")
    agents = importlib.import_module("rstar2_env.agents").AGENTS
    return typed_options(f"agent {part.name!r}", agents.get(part.name), options or {})


def agent_name(agent: str | Callable[[], AnyAgent]) -> str:
    """Return the name under which results list an agent: the given name, or the name of the given function."""
    return agent if isinstance(agent, str) else getattr(agent, "__qualname__", type(agent).__qualname__)
